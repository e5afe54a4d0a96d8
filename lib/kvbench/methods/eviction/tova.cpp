// SPDX-License-Identifier: Apache-2.0
// tova: the tokens to which the last query attends most, the same ones for all kv heads of a layer, chosen anew after
// every step. TOVA, arXiv 2401.06104, section 3; schwartz-lab-NLP/TOVA tova_cache.py, reduce().
//
// The score is the softmax weight of the last query, the mean over all query heads of the layer; its own token competes
// too. Of the context the B best tokens are kept. A decoded token is added, its query attends to all B + 1, and the
// token of the lowest weight is dropped.
// Parameters: none.
// Complexity: O(H G n d + n log n) for a layer of H kv heads, O(B d) per step. Memory: (B + 1) (d + dv) numbers for
// each of them.
// Deviations: none known. Equal weights: the lower token is kept, where the code leaves it to torch.topk.
#include <kvbench/methods/contract/of_heads.hpp>
#include <kvbench/methods/eviction/methods.hpp>
#include <kvbench/methods/eviction/window_votes.hpp>
#include <kvbench/methods/stages/kept_cache.hpp>
#include <kvbench/methods/stages/rows.hpp>

namespace kvbench::methods {
namespace {

/// The weights of the last step, by head, which the caches of a layer share.
using StepWeights = OfHeads<TokenNumbers>;

class TovaCache : public HeadCache {
 public:
  /// held: tokens of the context; index: of the head in its layer.
  TovaCache(const HeadPrompt& head, std::vector<TokenId> held, Index budget, std::size_t index,
            std::shared_ptr<StepWeights> step, Backend& backend)
      : HeadCache(head, backend),
        held_(std::move(held)),
        tokens_(head.tokens()),
        budget_(budget),
        index_(index),
        step_(std::move(step)) {}

  void append(const TokenBlock&) override {
    evict();
    held_.push_back(static_cast<TokenId>(tokens_++));
  }
  EntryTables entries(const QueryBlock&) const override {
    return {{.ids = backend_.adopt(std::vector(held_), 1, std::ssize(held_))}};
  }
  void observe(const QueryBlock&, const EntryTables&, std::span<const Buffer<const float>> weights) override {
    const GroupChoice mean{.per = GroupChoice::Per::kv_head};
    step_->add(index_, on_host(group_scores(weights.front(), 1, mean, backend_), backend_));
    observed_ = true;
  }
  Footprint footprint() const override { return kept_footprint(std::ssize(held_), d_, dv_); }

 private:
  /// After the step that was observed last: then the weights of all heads are known.
  void evict() {
    if (!std::exchange(observed_, false) || std::ssize(held_) <= budget_) return;
    TokenNumbers sum(held_.size());
    for (const TokenNumbers& weights : step_->all()) sum += weights;
    std::vector<TokenId> best =
        backend_.read(best_columns(as_scores(sum, backend_), 0, std::ssize(held_), budget_, backend_));
    for (TokenId& id : best) id = held_[static_cast<std::size_t>(id)];
    held_ = std::move(best);
  }

  std::vector<TokenId> held_;
  Index tokens_;  ///< of the stream so far
  Index budget_;
  std::size_t index_;
  std::shared_ptr<StepWeights> step_;
  bool observed_ = false;  ///< the step of the last token
};

MakeCaches prepare_tova(std::span<const HeadPrompt> heads, const NoParams&, Backend& backend) {
  const auto scores = as_scores(last_query_weights(heads, "tova", LastToken::competes, backend), backend);
  return [heads = std::vector(heads.begin(), heads.end()), scores, &backend](Index budget, std::uint32_t) {
    const Index n = scores.cols();
    const auto held = backend.read(best_columns(scores, 0, n, std::min(budget, n), backend));
    const auto step = std::make_shared<StepWeights>(heads.size());
    Caches caches;
    for (const HeadPrompt& head : heads)
      caches.push_back(std::make_unique<TovaCache>(head, held, budget, caches.size(), step, backend));
    return caches;
  };
}

}  // namespace

MethodInfo tova_method() {
  return with_params<NoParams>(
      {.name = "tova",
       .paper = "TOVA, arXiv 2401.06104, section 3",
       .summary = "tokens to which the last query attends most, the same for all kv heads of a layer, at each step",
       .notes = "As released: the last token competes, and a token is evicted after every step. kvpress keeps the last "
                "token and compresses once: `tova@kvpress`.",
       .complexity = {.compress = {"O(G n d + n log n)", 1}},
       .granularity = Granularity::layer,
       .needs = {Part::observed_queries},
       .check_data = [](const ContextData& data, const Params&) { check_window(data, "tova", 1); },
       .observes = true},
      prepare_tova);
}

}  // namespace kvbench::methods
