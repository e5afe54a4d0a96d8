// SPDX-License-Identifier: Apache-2.0
#include <kvbench/methods/eviction/h2o.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <vector>

#include <kvbench/methods/contract/method.hpp>
#include <kvbench/methods/stages/kept_cache.hpp>
#include <kvbench/methods/stages/parameters.hpp>
#include <kvbench/methods/stages/prompt_steps.hpp>
#include <kvbench/methods/stages/rows.hpp>

namespace kvbench::methods {
namespace {

/// The tokens that a head holds with their accumulated attention, and the rule of eviction. No vectors: on the host.
/// One list of tokens per query head, or one for the kv head; all lists are equally long. Scores are stored per query
/// head; with per=kv_head they are reduced over the query group at each eviction.
class HeavyHitters {
 public:
  HeavyHitters(Index group, const GroupChoice& choice, Index heavy, Index recent);

  /// Holds the tokens 0 .. n-1 with the scores `sums` [G, n]. Only on an empty state.
  void hold(std::span<const float> sums);
  /// Adds a newer token with score 0.
  void add(TokenId id);
  /// Adds the attention [held] of one step of query head g, in the order of its list, to the scores.
  void observe(Index g, std::span<const float> attention);
  /// Evicts tokens until heavy + recent are left: those with the lowest scores before the last `recent` ones, ties to
  /// the oldest.
  void evict();

  Index rows() const { return static_cast<Index>(ids_.size()); }
  Index held() const { return static_cast<Index>(ids_.front().size()); }
  /// The list of query head g, in increasing order.
  std::span<const TokenId> of_head(Index g) const { return ids_[row_of(g)]; }
  /// All lists, [rows, held].
  std::vector<TokenId> ids() const;

 private:
  std::size_t row_of(Index g) const { return choice_.per_head() ? static_cast<std::size_t>(g) : 0; }
  /// The scores that decide over the first `count` tokens of a list.
  std::vector<double> decisive_scores(std::size_t row, std::size_t count) const;

  GroupChoice choice_;
  Index heavy_, recent_;
  std::vector<std::vector<TokenId>> ids_;    ///< by row
  std::vector<std::vector<double>> scores_;  ///< by query head, in the order of the ids of its row
};

/// A mask of the `count` lowest scores, ties to the first.
std::vector<bool> least(const std::vector<double>& scores, Index count) {
  std::vector<std::size_t> order(scores.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::nth_element(order, order.begin() + count, {}, [&](std::size_t i) { return std::pair(scores[i], i); });
  std::vector<bool> chosen(scores.size(), false);
  for (Index i = 0; i < count; ++i) chosen[order[static_cast<std::size_t>(i)]] = true;
  return chosen;
}

/// Drops the elements that the mask marks; elements beyond the mask are kept.
template <class T>
void drop(std::vector<T>& list, const std::vector<bool>& mask) {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (i >= mask.size() || !mask[i]) list[kept++] = list[i];
  }
  list.resize(kept);
}

HeavyHitters::HeavyHitters(Index group, const GroupChoice& choice, Index heavy, Index recent)
    : choice_(choice),
      heavy_(heavy),
      recent_(recent),
      ids_(choice.per_head() ? static_cast<std::size_t>(group) : 1),
      scores_(static_cast<std::size_t>(group)) {}

void HeavyHitters::hold(std::span<const float> sums) {
  const std::size_t n = sums.size() / scores_.size();
  for (auto& list : ids_) list = token_range(0, static_cast<Index>(n));
  for (std::size_t g = 0; g < scores_.size(); ++g) {
    const auto row = sums.subspan(g * n, n);
    scores_[g].assign(row.begin(), row.end());
  }
}

void HeavyHitters::add(TokenId id) {
  for (auto& list : ids_) list.push_back(id);
  for (auto& list : scores_) list.push_back(0);
}

void HeavyHitters::observe(Index g, std::span<const float> attention) {
  std::vector<double>& scores = scores_[static_cast<std::size_t>(g)];
  for (std::size_t i = 0; i < attention.size(); ++i) scores[i] += attention[i];
}

std::vector<double> HeavyHitters::decisive_scores(std::size_t row, std::size_t count) const {
  const std::vector<double>& first = scores_[row];
  std::vector<double> decisive(first.begin(), first.begin() + static_cast<std::ptrdiff_t>(count));
  if (choice_.per_head()) return decisive;
  for (std::size_t g = 1; g < scores_.size(); ++g) {
    for (std::size_t i = 0; i < count; ++i) {
      const double score = scores_[g][i];
      decisive[i] = choice_.reduce == kernels::Reduction::max ? std::max(decisive[i], score) : decisive[i] + score;
    }
  }
  return decisive;  // sum and mean order tokens alike
}

void HeavyHitters::evict() {
  const Index excess = held() - heavy_ - recent_;
  if (excess <= 0) return;
  const auto candidates = static_cast<std::size_t>(held() - recent_);
  for (std::size_t row = 0; row < ids_.size(); ++row) {
    const std::vector<bool> evicted = least(decisive_scores(row, candidates), excess);
    drop(ids_[row], evicted);
    for (std::size_t g = 0; g < scores_.size(); ++g) {
      if (row_of(static_cast<Index>(g)) == row) drop(scores_[g], evicted);
    }
  }
}

std::vector<TokenId> HeavyHitters::ids() const {
  std::vector<TokenId> all;
  for (const auto& list : ids_) all.insert(all.end(), list.begin(), list.end());
  return all;
}

class H2oCache : public HeadCache {
 public:
  H2oCache(const HeadPrompt& head, HeavyHitters state, const GroupChoice& choice, Index recent, Backend& backend)
      : HeadCache(head, backend),
        choice_(choice),
        protected_{.recent = std::min(recent, head.tokens())},
        tokens_(head.tokens()),
        state_(std::move(state)),
        slots_(state_.held()) {}

  void append(const TokenBlock&) override {
    state_.evict();  // in case observe() was not called for the last token
    state_.add(static_cast<TokenId>(tokens_++));
    slots_ = state_.held();
  }

  EntryTables entries(const QueryBlock&) const override {
    if (state_.held() == 0) return {};
    return {{.per_head = choice_.per_head(), .ids = backend_.adopt(state_.ids(), state_.rows(), state_.held())}};
  }

  void observe(const QueryBlock&, const EntryTables&, std::span<const Buffer<const float>> weights) override {
    const std::vector<float> attention = backend_.read(weights.front());
    const auto held = static_cast<std::size_t>(state_.held());
    for (Index g = 0; g < group_; ++g) {
      state_.observe(g, std::span(attention).subspan(static_cast<std::size_t>(g) * held, held));
    }
    state_.evict();
  }

  Footprint footprint() const override {
    const Index copies = state_.rows() * slots_;
    // Sums and means can be stored reduced over the query group; a maximum of sums cannot.
    const bool by_head = choice_.per_head() || choice_.reduce == kernels::Reduction::max;
    Footprint arrays = kept_footprint(copies, d_, dv_);
    arrays.push_back({.name = "scores",
                      .element = Element::f32,
                      .rows = by_head ? group_ * slots_ : slots_,
                      .cols = 1,
                      .read = Read::never,
                      .content = Content::meta});
    return arrays;
  }
  Protected protected_tokens() const override { return protected_; }

 private:
  GroupChoice choice_;
  Protected protected_;
  Index tokens_;  ///< of the stream so far
  HeavyHitters state_;
  Index slots_;  ///< tokens held while the last query was answered
};

/// Greedy eviction over the whole context.
void replay_prompt(const HeadPrompt& head, HeavyHitters& state, Backend& backend) {
  for_each_prompt_step(head, backend, [&](Index t, const StepLogits& logits) {
    state.add(static_cast<TokenId>(t));
    for (Index g = 0; g < head.group; ++g) {
      state.observe(g, softmax_over(logits[static_cast<std::size_t>(g)], state.of_head(g)));
    }
    state.evict();
  });
}

void check_parts(const ContextData& data, H2oParams::Prompt prompt) {
  if (data.tokens == 0) return;
  if (prompt == H2oParams::Prompt::columns && !data.column_sums) {
    throw Unavailable(fmt::format(
        "h2o.prompt=columns needs the column sums up to the end of the context ({} tokens), and there are none; replay "
        "a trace that has them (--column-sums), or choose h2o.prompt=stream if there are all queries of the prompt",
        data.tokens));
  }
  if (prompt == H2oParams::Prompt::stream && !has_all_queries(data)) {
    throw Unavailable(
        fmt::format("h2o.prompt=stream needs the query of every token of the context, and {}; choose "
                    "h2o.prompt=columns, or replay a trace that has them all (--queries all)",
                    observed_share(data)));
  }
}

MakeCache prepare(const HeadPrompt& head, const H2oParams& params, Backend& backend) {
  check_parts(head.data(), params.prompt);
  return [head, params, &backend](Index budget, std::uint32_t) {
    const Index heavy = heavy_tokens(params.heavy, budget), recent = budget - heavy;
    HeavyHitters state(head.group, params.group, heavy, recent);
    if (params.prompt == H2oParams::Prompt::stream) {
      replay_prompt(head, state, backend);
    } else if (head.tokens() > 0) {
      state.hold(backend.read(head.column_sums));
      state.evict();
    }
    return std::make_unique<H2oCache>(head, std::move(state), params.group, recent, backend);
  };
}

}  // namespace

void fields(ParamVisitor& visitor, H2oParams& params) {
  visitor.real("heavy", params.heavy, {.min = 0, .max = 1},
               "share of the budget for heavy hitters, rounded down; the rest is the recent window");
  visitor.choice("prompt", params.prompt, {"columns", "stream"},
                 "prompt: column sums of its full attention map, or greedy eviction from its first token on");
  fields(visitor, params.group);
}

Index heavy_tokens(double share, Index budget) {
  return static_cast<Index>(std::floor(share * static_cast<double>(budget) + 1e-9));
}

MethodInfo h2o_method() {
  return with_params<H2oParams>(
      {
          .name = "h2o",
          .paper = "H2O, arXiv 2306.14048, section 4 and Algorithm 1",
          .summary = "the tokens with the largest accumulated attention, and the most recent ones",
          .notes = "Algorithm 1 evicts greedily from the first token on (prompt=stream, which needs the query of every "
                   "token of the context); the released real-drop code sums the prompt's full attention map and evicts "
                   "once (prompt=columns, default, which needs its column sums). Both then evict one token per step. "
                   "The real-drop code selects per query head, for models whose query heads have a kv head each "
                   "(per=query_head); the default here is one selection per kv head by the mean over its query group, "
                   "as in kvpress. The released evaluation code simulates another rule: `h2o-global`.",
          .complexity = {.compress = {"O(G n); prompt=stream O(n^2 d)", 1}, .memory = {"B (d + dv + 1)"}},
          .kind = Kind::eviction,
          .check_data = [](const ContextData& data,
                           const Params& params) { check_parts(data, params.as<H2oParams>().prompt); },
          .streaming = true,
          .observes = true,
          .properties = {.nested_budgets =
                             Property::no("prompt=stream: scores depend on the tokens that the budget holds")},
          .variants = {{{"per", "query_head"}}},
      },
      prepare);
}

}  // namespace kvbench::methods
