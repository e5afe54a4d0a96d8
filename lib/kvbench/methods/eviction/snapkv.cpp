// SPDX-License-Identifier: Apache-2.0
#include <kvbench/methods/eviction/snapkv.hpp>

namespace kvbench {
namespace {

std::shared_ptr<const Prepared> prepare(const HeadPrompt& head, const SnapkvParams& params, Backend& backend) {
  return window_votes(head, "snapkv", params.votes, backend);
}

}  // namespace

void fields(ParamVisitor& visitor, SnapkvParams& params) { fields(visitor, params.votes); }

void check(const SnapkvParams& params) { check_votes("snapkv", params.votes); }

MethodInfo snapkv_method() {
  return with_params<SnapkvParams>(
      {
          .name = "snapkv",
          .aliases = {},
          .paper = "SnapKV, arXiv 2404.14469, section 4",
          .summary = "tokens that the last prompt queries attend to, pooled over neighbours, and those queries' own tokens",
          .notes =
              "Paper and released LongBench configs: window 32, max pooling, kernel 7; the released class defaults to window "
              "64, mean pooling, kernel 5. Both select per query head over repeated keys.",
          .complexity = {.compress = "O(G W n d + G n log n)",
                         .query = "O(B (d + dv))",
                         .memory = "G B (d + dv)",
                         .growth = {.compress = 1, .query = 0, .memory = 0}},
          .kind = Kind::subset,
          .granularity = Granularity::query_head,
          .needs = {Part::observed_queries},
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
