// SPDX-License-Identifier: Apache-2.0
#include <kvbench/methods/eviction/exact.hpp>

#include <kvbench/methods/stages/stages.hpp>

namespace kvbench {
namespace {

std::shared_ptr<const Prepared> prepare(const HeadPrompt& head, const ExactParams& params, Backend& backend) {
  const bool f64 = params.accumulate == ExactParams::Accumulate::f64;
  return prepared([head, f64, &backend](Index /*budget*/, std::uint32_t /*seed*/) {
    return std::make_unique<KeptCache>(backend, head, KeptTokens{.ids = token_range(0, head.tokens())}, f64);
  });
}

}  // namespace

void fields(ParamVisitor& visitor, ExactParams& params) {
  visitor.choice("accumulate", params.accumulate, {"f32", "f64"}, "precision of the sums");
}

MethodInfo exact_method() {
  return with_params<ExactParams>(
      {
          .name = "exact",
          .aliases = {"full"},
          .paper = "reference",
          .summary = "the whole cache: the noise floor of the exact pass",
          .notes = "Ignores the budget.",
          .complexity = {.compress = "O(n)",
                         .query = "O(n (d + dv))",
                         .memory = "n (d + dv)",
                         .growth = {.compress = 1, .query = 1, .memory = 1}},
          .kind = Kind::exact,
          .streaming = true,
          .windowed = true,
          .properties = {.full_budget_exact = Property::yes(),
                         .value_scaling = Property::yes(),
                         .key_shift = Property::yes(),
                         .head_permutation = Property::yes(),
                         .nested_budgets = Property::yes(),
                         .weight_sum = WeightSum::ones},
      },
      prepare);
}

}  // namespace kvbench
