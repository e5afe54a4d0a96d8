// SPDX-License-Identifier: Apache-2.0
// The information that a method may use: no evaluated query, and only the parts of a trace that it declares in `needs`.
#include <algorithm>

#include <kvbench/testing/properties.hpp>

namespace kvbench::testing {
namespace {

/// The same head with other queries after the context.
HeadData with_other_queries(HeadData head) {
  for (Index g = 0; g < head.group; ++g) {
    const auto begin = head.queries.begin() + (g * head.total + head.n) * head.d;
    std::for_each(begin, begin + (head.total - head.n) * head.d, [](float& x) { x = 1 - 2 * x; });
  }
  return head;
}

/// The heads without what `change` takes away must be answered, or refused with a reason.
template <class Change>
void require_answers(Trial& trial, Change change) {
  Heads heads = trial.heads();
  for (HeadData& head : heads) change(head);
  const Instance instance = trial.try_open(heads, 24);
  if (instance.session) require_finite(trial.prefill(instance, heads));
}

}  // namespace

std::string evaluated_queries_do_not_matter(Trial& trial) {
  if (trial.info().kind == methods::Kind::retrieval) return "it chooses tokens for each query";
  const Heads heads = trial.heads();
  Heads altered;
  for (const HeadData& head : heads) altered.push_back(with_other_queries(head));
  for (const Index budget : {13, 24, 40}) {
    const Instance before = trial.try_open(heads, budget), after = trial.try_open(altered, budget);
    if (!before.session) continue;
    const auto a = trial.prefill(before, heads), b = trial.prefill(after, altered);
    for (std::size_t h = 0; h < heads.size(); ++h)
      require(a[h].entries == b[h].entries,
              "other queries give other entries; a method that chooses tokens for each query is of kind \"retrieval\"");
  }
  return {};
}

std::string parts_are_declared(Trial& trial) {
  using methods::Part;
  constexpr std::pair<Part, const char*> parts[] = {{Part::observed_queries, "observed_queries"},
                                                    {Part::column_sums, "column_sums"},
                                                    {Part::keys_pre_rope, "keys_pre_rope"},
                                                    {Part::speculated_queries, "speculated_queries"},
                                                    {Part::output_sketch, "output_sketch"}};
  for (const auto& [part, name] : parts) {
    if (std::ranges::find(trial.info().needs, part) != trial.info().needs.end()) continue;
    trial.describe(fmt::format("without {}, which is not in `needs`", name));
    require_answers(trial, [part = part](HeadData& head) { head.lacks = {part}; });
  }
  trial.describe("without RoPE");
  require_answers(trial, [](HeadData& head) { head.rope.reset(); });
  return {};
}

}  // namespace kvbench::testing
