// SPDX-License-Identifier: Apache-2.0
// The information that a method may use: no evaluated query, and only the parts of a trace that it declares in `needs`.
#include <algorithm>

#include <support/rows.hpp>

using namespace kvbench;
using namespace kvbench::methods;
using namespace kvbench::testing;

namespace {

/// The same head with other queries after the context.
HeadData with_other_queries(HeadData head) {
  for (Index g = 0; g < head.group; ++g) {
    const auto begin = head.queries.begin() + (g * head.total + head.n) * head.d;
    std::for_each(begin, begin + (head.total - head.n) * head.d, [](float& x) { x = 1 - 2 * x; });
  }
  return head;
}

void remove(Part part, HeadPrompt& prompt) {
  if (part == Part::observed_queries) {
    prompt.observed = {};
    prompt.observed_positions.clear();
  }
  if (part == Part::column_sums) prompt.column_sums = {};
  if (part == Part::keys_pre_rope) prompt.keys_pre_rope = {};
}

}  // namespace

TEST_CASE("evaluated queries do not affect the entries, unless the method selects per query") {
  for_each_row([](const Row& row, Backend& backend) {
    if (row.info->kind == Kind::retrieval) return;
    const Heads heads = heads_for(row, {}, backend);
    Heads altered;
    for (const HeadData& head : heads) altered.push_back(with_other_queries(head));
    for (const Index budget : {13, 24, 40}) {
      const Instance before = try_open(row, heads, budget, 1, backend),
                     after = try_open(row, altered, budget, 1, backend);
      if (!before.cache) continue;
      const auto a = prefill(before, heads, backend), b = prefill(after, altered, backend);
      for (std::size_t h = 0; h < heads.size(); ++h) {
        CHECK(a[h].entries == b[h].entries);
      }
    }
  });
}

TEST_CASE("a missing part of the trace is in `needs`, or an error, or not needed") {
  for_each_row([](const Row& row, Backend& backend) {
    const Heads heads = heads_for(row, {}, backend);
    const auto runs = [&](auto change) {
      std::vector<HeadPrompt> prompts;
      for (const HeadData& head : heads) change(prompts.emplace_back(prompt_of(head, backend)));
      try {
        return all_finite(prefill(open(row, prompts, 24, 1, backend), heads, backend)[0].answers);
      } catch (const Unavailable& refusal) {
        CHECK_FALSE(std::string(refusal.what()).empty());
        return true;
      }
    };
    for (const Part part : {Part::observed_queries, Part::column_sums, Part::keys_pre_rope}) {
      if (std::ranges::find(row.info->needs, part) != row.info->needs.end()) continue;
      CHECK(runs([&](HeadPrompt& prompt) { remove(part, prompt); }));
    }
    CHECK(runs([](HeadPrompt& prompt) { prompt.rope.reset(); }));
  });
}
