// SPDX-License-Identifier: Apache-2.0
#include <kvbench/methods/sampling/balancekv.hpp>

#include <utility>

#include <kvbench/methods/sampling/balancekv_stream.hpp>
#include <kvbench/methods/stages/draws.hpp>
#include <kvbench/methods/stages/kept_cache.hpp>
#include <kvbench/methods/stages/rows.hpp>

namespace kvbench::methods {
namespace {

using Half = BalancekvParams::Half;

/// Halves the first tokens of a context in rounds.
class Halving {
 public:
  Halving(const HeadPrompt& head, const BalancekvParams& params, std::uint32_t seed, Backend& backend)
      : head_(head), params_(params), draws_(seed, "balancekv", head), backend_(backend) {}

  /// The tokens left of the first `tokens` after `rounds` rounds.
  WeightedTokens run(Index tokens, Index rounds) {
    WeightedTokens list, aside;
    list.add_range(0, tokens);
    for (Index round = 0; round < rounds; ++round) {
      if (params_.half == Half::exact && list.ids.size() % 2 != 0) {
        aside.ids.push_back(list.ids.back());
        aside.weights.push_back(list.weights.back());
        list.ids.pop_back();
        list.weights.pop_back();
      }
      list = halve(list, static_cast<std::uint32_t>(round));
    }
    list.ids.insert(list.ids.end(), aside.ids.begin(), aside.ids.end());
    list.weights.insert(list.weights.end(), aside.weights.begin(), aside.weights.end());
    return list;
  }

  Index fails() const { return fails_; }
  Index steps() const { return steps_; }

 private:
  WeightedTokens halve(const WeightedTokens& list, std::uint32_t round) {
    const Index n = std::ssize(list.ids);
    const std::vector<std::int32_t> starts = block_starts(n, params_.block);
    const WalkSigns walk = sign(list, starts, round);
    fails_ += walk.fails;
    steps_ += params_.half == Half::exact ? (n + 1) / 2 : n;
    if (params_.half == Half::released) return list.at(released_half(walk.signs));
    // With half=exact each pair has one +1, so that this keeps half of the tokens.
    KeptPlaces kept{smaller_halves(walk.signs, starts), {}};
    kept.factors.assign(kept.places.size(), 2);
    return list.at(kept);
  }

  WalkSigns sign(const WeightedTokens& list, const std::vector<std::int32_t>& starts, std::uint32_t round) const {
    WalkRows rows{.keys = rows_at(head_.keys, list.ids, backend_),
                  .values = rows_at(head_.values, list.ids, backend_),
                  .starts = starts,
                  .uniforms = token_uniforms(draws_, list.ids, round)};
    // Equal weights would scale the vectors and their largest norm alike, and change no sign.
    if (params_.half == Half::released) rows.weights = list.weights;
    return softmax_balance(rows, walk_settings(params_, head_.scale), backend_);
  }

  const HeadPrompt& head_;
  const BalancekvParams& params_;
  Draws draws_;
  Backend& backend_;
  Index fails_ = 0, steps_ = 0;
};

std::unique_ptr<CompressedCache> make_batch(const HeadPrompt& head, const BalancekvParams& params, Index budget,
                                            std::uint32_t seed, Backend& backend) {
  const Index n = head.tokens();
  const auto left = params.half == Half::exact ? left_of_pairs : left_of_halves;
  const HalvingPlan plan = plan_halving("balancekv", n, budget, params.rounds, left);
  if (plan.rounds == 0) return std::make_unique<KeptCache>(backend, head, KeptTokens{.ids = token_range(0, n)});
  Halving halving(head, params, seed, backend);
  WeightedTokens kept = halving.run(n - plan.recent, plan.rounds);
  kept.add_range(n - plan.recent, n);
  return std::make_unique<KeptCache>(backend, head,
                                     KeptTokens{.ids = std::move(kept.ids),
                                                .weight = std::move(kept.weights),
                                                .fixed = {.recent = plan.recent},
                                                .notes = walk_notes(halving.fails(), halving.steps())});
}

MakeCache prepare(const HeadPrompt& head, const BalancekvParams& params, Backend& backend) {
  using Mode = BalancekvParams::Mode;
  const bool empty_context = head.calibration_keys.present();
  if (params.mode == Mode::stream ||
      (params.mode == Mode::automatic && empty_context && params.half != Half::released)) {
    return prepare_balancekv_stream(head, params, backend);
  }
  if (empty_context) {
    throw Unavailable(
        "balancekv.mode=batch (and half=released, which implies it) compresses the context and keeps every later "
        "token, but the context of this stream is empty; set balancekv.mode=stream");
  }
  return [head, params, &backend](Index budget, std::uint32_t seed) {
    return make_batch(head, params, budget, seed, backend);
  };
}

}  // namespace

void fields(ParamVisitor& visitor, BalancekvParams& params) {
  visitor.text("constants", params.constants, "paper|tight|greedy|NUMBER", "c of the walk's threshold c R^2");
  visitor.real("delta", params.delta, {.min = 0, .max = 1},
               "failure probability of a call; 0: 1 / the tokens of the call");
  visitor.choice(
      "half", params.half, {"smaller", "exact", "released"},
      "tokens kept: the smaller sign class of each block, one of each pair of neighbours, or the released rule");
  visitor.choice("mode", params.mode, {"auto", "batch", "stream"},
                 "halve the context in blocks, or merge and reduce a stream; auto: batch unless the context is empty");
  visitor.integer("rounds", params.rounds, {.min = -1, .max = 40}, "T; -1: from the budget");
  visitor.integer("block", params.block, {.min = 2}, "tokens per block (mode=batch)");
  visitor.integer("t", params.t, {.min = 0},
                  "batch size of a stream (mode=stream); 0: the largest size that fits the budget");
  visitor.real("eps", params.eps, {.min = 0}, "precision of the bucket cut (mode=stream)");
  visitor.integer("buckets", params.buckets, {.min = 1}, "assumed number of buckets of future values (mode=stream)");
}

void check(const BalancekvParams& params) {
  parse_walk_constant("balancekv.constants", params.constants);
  const bool stream = params.mode == BalancekvParams::Mode::stream;
  if (stream && params.half == Half::released) {
    throw Error(
        "balancekv.half=released is a rule over all blocks of a context; mode=stream requires smaller or exact");
  }
  if (!stream && params.t > 0)
    throw Error(
        "balancekv.t={} is the batch size of mode=stream; set balancekv.mode=stream, or balancekv.block instead",
        params.t);
  if (params.t == 1) throw Error("balancekv.t=1 would keep nothing; it must be 0 or at least 2");
  if (params.half == Half::exact && (stream ? params.t : params.block) % 2 != 0) {
    throw Error("balancekv.half=exact pairs neighbours, so balancekv.{} must be even; or set balancekv.half=smaller",
                stream ? "t" : "block");
  }
}

WalkSettings walk_settings(const BalancekvParams& params, float scale) {
  return {.constant = parse_walk_constant("balancekv.constants", params.constants),
          .delta = params.delta,
          .pairs = params.half == Half::exact,
          .scale = scale};
}

MethodInfo balancekv_method() {
  return with_params<BalancekvParams>(
      {
          .name = "balancekv",
          .paper = "BalanceKV, arXiv 2502.07861, Algorithms 1 to 4 and section 4",
          .summary = "tokens halved by a self-balancing walk, in blocks of the context or as a stream",
          .notes = "mode=batch is the form that the paper measures, mode=stream its Algorithms 1 and 3. The text of "
                   "section 4 selects exactly half of the tokens (half=exact, default), Algorithm 2 the smaller sign "
                   "class (half=smaller). The row reports the number of steps beyond the threshold (FAIL). With the "
                   "paper's constant the signs are nearly fair coins. The released code is `balancekv-repo`.",
          .complexity = {.compress = {"O(n block (d + dv)), mode=stream O(n t (d + dv) T)", 1},
                         .memory = {"B (d + dv) + B"}},
          .kind = Kind::sampling,
          .streaming = true,
          .seeded = true,
          .properties = {.key_shift = Property::no("the walk balances exp of inner products of the keys"),
                         .head_permutation = Property::no("draws are keyed by the head"),
                         .nested_budgets = Property::no("a different number of rounds gives a different walk"),
                         .equal_bytes = Property::no("with half=smaller and mode=stream, signs say how many stay"),
                         .weight_sum = WeightSum::at_most_context},
          .draws = [](const Params& p) { return p.as<BalancekvParams>().constants != "greedy"; },
      },
      prepare);
}

}  // namespace kvbench::methods
