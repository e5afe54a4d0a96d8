// SPDX-License-Identifier: Apache-2.0
#include <kvbench/methods/eviction/h2o.hpp>

#include <algorithm>
#include <cmath>

#include <kvbench/methods/eviction/heavy_hitters.hpp>
#include <kvbench/methods/stages/kept_cache.hpp>
#include <kvbench/methods/stages/prompt_steps.hpp>

namespace kvbench::methods {
namespace {

class H2oCache : public CompressedCache {
 public:
  H2oCache(const HeadPrompt& head, HeavyHitters state, const GroupChoice& choice, Index recent, Backend& backend)
      : backend_(backend),
        choice_(choice),
        d_(head.keys.cols()),
        dv_(head.values.cols()),
        group_(head.group),
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
  Backend& backend_;
  GroupChoice choice_;
  Index d_, dv_, group_;
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
        "h2o.prompt=columns needs the column sums up to the end of the context ({} tokens), and the trace has none; "
        "dump with --column-sums, or choose h2o.prompt=stream where the trace has all queries of the prompt",
        data.tokens));
  }
  if (prompt == H2oParams::Prompt::stream && !has_all_queries(data)) {
    throw Unavailable(
        fmt::format("h2o.prompt=stream needs the query of every token of the context, and {}; dump with --queries all, "
                    "or choose h2o.prompt=columns",
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
          .complexity = {.compress = "O(G n); prompt=stream O(n^2 d)",
                         .query = "O(B (d + dv))",
                         .memory = "B (d + dv + 1)",
                         .growth = {.compress = 1, .query = 0, .memory = 0}},
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
