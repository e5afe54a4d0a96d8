// SPDX-License-Identifier: Apache-2.0
#include <kvbench/methods/sampling/balancekv_repo.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <utility>

#include <kvbench/methods/stages/stages.hpp>
#include <kvbench/methods/sampling/walked_blocks.hpp>

namespace kvbench {
namespace {

constexpr double value_offset = 0.025 + 1e-8;

/// What all budgets and seeds read.
struct Shared {
  HeadPrompt head;
  BalancekvRepoParams params;
  Backend& backend;
  std::vector<double> norms2;  ///< of the keys
};

class ReleasedWalk {
 public:
  ReleasedWalk(const Shared& shared, std::uint32_t seed, WalkedBlocks& walked)
      : shared_(shared), draws_(seed, "balancekv-repo", shared.head), walked_(walked) {
    walked_.start(seed);
  }

  WeightedTokens run(Index tokens, Index rounds) {
    WeightedTokens list;
    list.add_range(0, tokens);
    for (Index round = 0; round < rounds && !list.ids.empty(); ++round) {
      list = list.at(released_half(sign(list, static_cast<std::uint32_t>(round))));
    }
    return list;
  }

  std::vector<Note> notes() const {
    return {{"signs that were certain", static_cast<double>(certain_)}, {"of steps", static_cast<double>(steps_)}};
  }

 private:
  std::vector<std::int32_t> sign(const WeightedTokens& list, std::uint32_t round) {
    const BalancekvRepoParams& params = shared_.params;
    const double shift = shift_of(list), step = std::min(1e38, params.gamma * std::exp(shift - params.beta));
    const auto walk = [&](const WeightedTokens& tokens, std::vector<std::int32_t> starts) {
      return blocks(tokens, std::move(starts), static_cast<float>(shift), static_cast<float>(step), round);
    };
    const std::vector<std::int32_t> given = {static_cast<std::int32_t>(round), bits(shift), bits(step)};
    SignedBlocks walked = walked_.sign(list, params.block, given, walk, shared_.backend);
    certain_ = std::accumulate(walked.events.begin(), walked.events.end(), certain_);
    steps_ += std::ssize(list.ids);
    return std::move(walked.signs);
  }

  SignedBlocks blocks(const WeightedTokens& list, std::vector<std::int32_t> starts, float shift, float step,
                      std::uint32_t round) const {
    const auto& [head, params, backend, norms2] = shared_;
    const Index n = std::ssize(list.ids), blocks = std::ssize(starts) - 1;
    // clang 14 does not capture structured bindings by [&].
    const auto of_each = [&, &backend = backend](float x) {
      return backend.adopt(std::vector(static_cast<std::size_t>(blocks), x), blocks);
    };
    const auto signs = backend.allocate<std::int32_t>(n);
    const auto certain = backend.allocate<std::int32_t>(blocks);
    backend.run(kernels::BalanceWalk<Buffer>{.keys = rows_at(head.keys, list.ids, backend),
                                             .values = rows_at(head.values, list.ids, backend),
                                             .weights = backend.adopt(std::vector(list.weights), n),
                                             .starts = backend.adopt(std::move(starts), blocks + 1),
                                             .shift = of_each(shift),
                                             .step = of_each(step),
                                             .scale = static_cast<float>(params.temp) * head.scale,
                                             .value_offset = static_cast<float>(value_offset),
                                             .centre = params.block,
                                             .first_positive = true,
                                             .uniforms = backend.adopt(token_uniforms(draws_, list.ids, round), n),
                                             .signs = signs,
                                             .fails = certain});
    return {.signs = backend.read(signs), .events = backend.read(certain)};
  }

  /// Off all exponents, and into the step: at most 80, which fp32 holds.
  double shift_of(const WeightedTokens& list) const {
    double largest = 0;
    for (const TokenId id : list.ids) largest = std::max(largest, shared_.norms2[static_cast<std::size_t>(id)]);
    return std::min(80.0, walk_shift(shared_.params.temp * double{shared_.head.scale} * largest));
  }
  static std::int32_t bits(double x) { return std::bit_cast<std::int32_t>(static_cast<float>(x)); }

  const Shared& shared_;
  Draws draws_;
  WalkedBlocks& walked_;
  Index certain_ = 0, steps_ = 0;
};

class ReleasedPrepared : public Prepared {
 public:
  ReleasedPrepared(const HeadPrompt& head, const BalancekvRepoParams& params, Backend& backend)
      : shared_{head, params, backend, {}} {
    const auto norms2 = backend.allocate<double>(head.tokens());
    backend.run(kernels::SquaredNorms<Buffer>{.rows = head.keys, .out = norms2});
    shared_.norms2 = backend.read(norms2);
  }

  std::unique_ptr<CompressedCache> make(Index budget, std::uint32_t seed) const override {
    const auto& [head, params, backend, norms2] = shared_;
    const Index n = head.tokens();
    const HalvingPlan plan = plan_halving("balancekv-repo", n, budget, params.rounds, left_of_halves);
    if (plan.rounds == 0) return std::make_unique<KeptCache>(backend, head, KeptTokens{.ids = token_range(0, n)});
    ReleasedWalk walk(shared_, seed, walked_);
    WeightedTokens kept = walk.run(n - plan.recent, plan.rounds);
    spare(walked_.take_spared());
    std::vector<float> den;
    if (params.mass == BalancekvRepoParams::Mass::released) {
      den.assign(kept.ids.size(), std::ldexp(1.0f, static_cast<int>(plan.rounds)));
      den.resize(kept.ids.size() + static_cast<std::size_t>(plan.recent), 1);
    }
    kept.add_range(n - plan.recent, n);
    return std::make_unique<KeptCache>(backend, head,
                                       KeptTokens{.ids = std::move(kept.ids),
                                                  .weight = std::move(kept.weights),
                                                  .fixed = {.recent = plan.recent},
                                                  .weight_den = std::move(den),
                                                  .notes = walk.notes()});
  }

 private:
  Shared shared_;
  mutable WalkedBlocks walked_;
};

std::shared_ptr<const Prepared> prepare(const HeadPrompt& head, const BalancekvRepoParams& params, Backend& backend) {
  return std::make_shared<ReleasedPrepared>(head, params, backend);
}

}  // namespace

void fields(ParamVisitor& visitor, BalancekvRepoParams& params) {
  visitor.choice("mass", params.mass, {"released", "consistent"}, "weights of the denominator: 2^T, or those of the numerator");
  visitor.real("temp", params.temp, {.min = 0}, "factor of the walk's exponent");
  visitor.real("gamma", params.gamma, {.min = 0, .max = 1000}, "step of the walk");
  visitor.real("beta", params.beta, {.min = -50, .max = 50}, "taken off the walk's exponent");
  visitor.integer("block", params.block, {.min = 2}, "tokens of a block");
  visitor.integer("rounds", params.rounds, {.min = -1, .max = 40}, "T; -1: from the budget");
}

MethodInfo balancekv_repo_method() {
  return with_params<BalancekvRepoParams>(
      {
          .name = "balancekv-repo",
          .aliases = {},
          .paper = "BalanceKV, arXiv 2502.07861, released code of Fig. 2",
          .summary = "the released halving walk: centred keys, step 4, exactly half stays",
          .notes =
              "Differs from the paper's listing in kernel, step and choice of the half. Numerator weights are 1 or 2 a round, "
              "the denominator takes 2 a round for all: mass=consistent mends that. The row counts the signs that no draw "
              "could change.",
          .complexity = {.compress = "O(n block (d + dv))",
                         .query = "O(B (d + dv))",
                         .memory = "B (d + dv) + 2 B",
                         .growth = {.compress = 1, .query = 0, .memory = 0}},
          .kind = Kind::sample,
          .seeded = true,
          .properties = {.full_budget_exact = Property::yes(),
                         .value_scaling = Property::no("0.025 is added to inner products of values"),
                         .key_shift = Property::no("the padding zeros of the last block enter the mean that is taken off"),
                         .head_permutation = Property::no("draws are keyed by the head"),
                         .nested_budgets = Property::no("another number of rounds is another walk"),
                         .weight_sum = WeightSum::at_most_context},
      },
      prepare);
}

}  // namespace kvbench
