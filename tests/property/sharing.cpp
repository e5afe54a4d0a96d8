// SPDX-License-Identifier: Apache-2.0
// What a method computes when it is first needed serves other budgets and seeds: their caches must not depend on it.
#include <map>
#include <optional>

#include <support/rows.hpp>

using namespace kvbench;
using namespace kvbench::testing;

namespace {

using Asked = std::pair<Index, std::uint32_t>;  ///< budget and seed

struct Made {
  std::vector<Result> results;                                ///< of prefill
  std::vector<std::vector<std::vector<Entry>>> after_decode;  ///< by head, at the last token
  std::vector<std::vector<std::pair<std::string, double>>> notes;
};

/// Nothing where the method refuses.
std::optional<Made> make(const PreparedRow& prepared, Asked asked, const Row& row, const Heads& heads, Backend& backend) {
  Made made;
  try {
    const Instance instance = prepared.make(asked.first, asked.second);
    made.results = prefill(instance, heads, backend);
    for (auto& head : decode(instance, heads, 5, row.info->observes, backend)) made.after_decode.push_back(head.back().entries);
    auto& notes = made.notes.emplace_back();
    for (const Note& note : instance.cache->notes()) notes.emplace_back(note.text, note.count);
  } catch (const Infeasible&) {
    return std::nullopt;
  }
  return made;
}

void check_equal(const std::optional<Made>& made, const std::optional<Made>& alone) {
  REQUIRE(made.has_value() == alone.has_value());
  if (!made) return;
  for (std::size_t h = 0; h < alone->results.size(); ++h) {
    CHECK(made->results[h].entries == alone->results[h].entries);
    CHECK(made->results[h].answers == alone->results[h].answers);
  }
  CHECK(made->after_decode == alone->after_decode);
  CHECK(made->notes == alone->notes);
}

}  // namespace

TEST_CASE("a cache is the one made alone, to the bit, whatever was made before it") {
  const std::vector<Asked> falling = {{110, 1}, {90, 1}, {50, 1}, {41, 1}, {13, 1}, {5, 1},
                                      {110, 2}, {90, 2}, {50, 2}, {41, 2}, {13, 2}, {5, 2}};
  const std::vector<Asked> rising(falling.rbegin(), falling.rend());
  const std::vector<Asked> mixed = {{41, 1}, {110, 2}, {13, 1}, {13, 1}, {90, 1}, {5, 2}, {50, 2}, {90, 1}};
  for_each_row([&](const Row& row, Backend& backend) {
    const Heads heads = heads_for(row, {.n = 120}, backend);
    const std::vector<HeadPrompt> prompts = prompts_of(heads, backend);
    std::map<Asked, std::optional<Made>> alone;
    for (const Asked& asked : falling) {
      alone[asked] = make(PreparedRow(row, prompts, backend), asked, row, heads, backend);
    }
    for (const auto& order : {falling, rising, mixed}) {
      const PreparedRow prepared(row, prompts, backend);
      for (const Asked& asked : order) {
        CAPTURE(asked.first);
        CAPTURE(asked.second);
        check_equal(make(prepared, asked, row, heads, backend), alone.at(asked));
      }
    }
  });
}
