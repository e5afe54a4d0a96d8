// SPDX-License-Identifier: Apache-2.0
// Results that a method computes on first use are shared by other budgets and seeds: a cache must not depend on the
// caches made before.
#include <map>
#include <optional>

#include <support/rows.hpp>

using namespace kvbench;
using namespace kvbench::methods;
using namespace kvbench::testing;

namespace {

using Request = std::pair<Index, std::uint32_t>;  ///< budget and seed

struct Made {
  std::vector<Result> results;                                ///< of prefill
  std::vector<std::vector<std::vector<Entry>>> after_decode;  ///< by head, at the last token
  std::vector<std::vector<std::pair<std::string, double>>> notes;
};

/// Absent where the method is infeasible.
std::optional<Made> make(const PreparedRow& prepared, Request request, const Row& row, const Heads& heads,
                         Backend& backend) {
  Made made;
  try {
    const Instance instance = prepared.make(request.first, request.second);
    made.results = prefill(instance, heads, backend);
    for (auto& head : decode(instance, heads, 5, row.info->observes, backend))
      made.after_decode.push_back(head.back().entries);
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

TEST_CASE("a cache does not depend on the caches made before it") {
  const std::vector<Request> falling = {{110, 1}, {50, 1}, {41, 1}, {5, 1}, {110, 2}, {50, 2}, {41, 2}, {5, 2}};
  const std::vector<Request> rising(falling.rbegin(), falling.rend());
  const std::vector<Request> mixed = {{41, 1}, {110, 2}, {5, 1}, {5, 1}, {50, 1}, {5, 2}, {50, 2}, {50, 1}};
  for_each_row([&](const Row& row, Backend& backend) {
    const Heads heads = heads_for(row, {.n = 120}, backend);
    const std::vector<HeadPrompt> prompts = prompts_of(heads, backend);
    std::map<Request, std::optional<Made>> alone;
    for (const Request& request : falling) {
      alone[request] = make(PreparedRow(row, prompts, backend), request, row, heads, backend);
    }
    for (const auto& order : {falling, rising, mixed}) {
      const PreparedRow prepared(row, prompts, backend);
      for (const Request& request : order) {
        CAPTURE(request.first);
        CAPTURE(request.second);
        check_equal(make(prepared, request, row, heads, backend), alone.at(request));
      }
    }
  });
}
