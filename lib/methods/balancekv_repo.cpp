// SPDX-License-Identifier: Apache-2.0
#include <kvbench/methods/balancekv_repo.hpp>

#include <algorithm>
#include <cmath>
#include <utility>

#include <kvbench/methods/softmax_balance.hpp>
#include <kvbench/methods/stages.hpp>

namespace kvbench {
namespace {

constexpr double value_offset = 0.025 + 1e-8;

class ReleasedWalk {
 public:
  ReleasedWalk(const HeadPrompt& head, const BalancekvRepoParams& params, std::uint32_t seed, Backend& backend)
      : head_(head), params_(params), draws_(seed, "balancekv-repo", head), backend_(backend) {}

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
    const Index n = std::ssize(list.ids);
    const auto keys = rows_at(head_.keys, list.ids, backend_), values = rows_at(head_.values, list.ids, backend_);
    std::vector<std::int32_t> starts = block_starts(n, params_.block);
    const Index blocks = std::ssize(starts) - 1;
    const double shift = shift_of(keys);
    const double step = std::min(1e38, params_.gamma * std::exp(shift - params_.beta));
    const auto signs = backend_.allocate<std::int32_t>(n);
    const auto certain = backend_.allocate<std::int32_t>(blocks);
    backend_.run(kernels::BalanceWalk<Buffer>{
        .keys = keys,
        .values = values,
        .weights = backend_.adopt(std::vector(list.weights), n),
        .starts = backend_.adopt(std::move(starts), blocks + 1),
        .shift = backend_.adopt(std::vector(static_cast<std::size_t>(blocks), static_cast<float>(shift)), blocks),
        .step = backend_.adopt(std::vector(static_cast<std::size_t>(blocks), static_cast<float>(step)), blocks),
        .scale = static_cast<float>(params_.temp) * head_.scale,
        .value_offset = static_cast<float>(value_offset),
        .centre = params_.block,
        .first_positive = true,
        .uniforms = backend_.adopt(token_uniforms(draws_, list.ids, round), n),
        .signs = signs,
        .fails = certain});
    for (const std::int32_t count : backend_.read(certain)) certain_ += count;
    steps_ += n;
    return backend_.read(signs);
  }

  /// Off all exponents, and into the step: at most 80, which fp32 holds.
  double shift_of(const Buffer<const float>& keys) const {
    const auto norms2 = backend_.allocate<double>(keys.rows());
    backend_.run(kernels::SquaredNorms<Buffer>{.rows = keys, .out = norms2});
    return std::min(80.0, walk_shift(params_.temp * double{head_.scale} * std::ranges::max(backend_.read(norms2))));
  }

  const HeadPrompt& head_;
  const BalancekvRepoParams& params_;
  Draws draws_;
  Backend& backend_;
  Index certain_ = 0, steps_ = 0;
};

std::unique_ptr<CompressedCache> compress(const HeadPrompt& head, const BalancekvRepoParams& params, Index budget,
                                          std::uint32_t seed, Backend& backend) {
  const Index n = head.tokens();
  const HalvingPlan plan = plan_halving("balancekv-repo", n, budget, params.rounds, left_of_halves);
  if (plan.rounds == 0) return std::make_unique<KeptCache>(backend, head, KeptTokens{.ids = token_range(0, n)});
  ReleasedWalk walk(head, params, seed, backend);
  WeightedTokens kept = walk.run(n - plan.recent, plan.rounds);
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

std::shared_ptr<const Prepared> prepare(const HeadPrompt& head, const BalancekvRepoParams& params, Backend& backend) {
  return prepared(
      [head, params, &backend](Index budget, std::uint32_t seed) { return compress(head, params, budget, seed, backend); });
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
