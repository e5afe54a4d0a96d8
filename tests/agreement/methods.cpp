// SPDX-License-Identifier: Apache-2.0
// Every method on a pair of backends, from the same method sources: equal random draws, equal decisions except where a
// margin is too small, and answers within 1e-4 where the decisions agree.
#include <doctest/doctest.h>
#include <agreement/outcome.hpp>

using namespace kvbench;
using namespace kvbench::methods;
using namespace kvbench::testing;

namespace {

/// Counts of compared runs, which limit the share of excused differences.
struct Tally {
  int runs = 0, excused = 0;
};

void check_agreement(const Run& run, const Heads& heads, Pair& pair, Tally& tally) {
  CAPTURE(run.budget);
  CAPTURE(run.decode);
  const Outcome expected = outcome_of(run, heads, *pair.trusted), actual = outcome_of(run, heads, *pair.tested);
  ++tally.runs;
  if (same_decisions(actual, expected)) {
    const std::string found = difference(actual, expected);
    CHECK_MESSAGE(found.empty(), found);
    return;
  }
  ++tally.excused;
  CHECK_MESSAGE(undecided(run, heads, expected, *pair.trusted), "other decisions, although the margins are not small");
}

/// Calls check(row, pair) for all rows and pairs, and reports both on failure.
template <class Check>
void for_each_row_and_pair(Check check) {
  for (Pair& pair : pairs_under_test()) {
    const std::string name = std::string(pair.tested->name()) + " " + std::string(pair.tested->isa()) + " against " +
                             std::string(pair.trusted->name()) + " " + std::string(pair.trusted->isa());
    CAPTURE(name);
    for (const Row& row : all_rows()) {
      CAPTURE(row.info->name);
      CAPTURE(row.params.text());
      check(row, pair);
    }
  }
}

void check_rows(const Shape& shape, std::vector<Index> budgets, bool decode) {
  Tally tally;
  for_each_row_and_pair([&](const Row& row, Pair& pair) {
    const Heads heads = Trial(row, *pair.trusted).heads(shape);
    for (const Index budget : budgets) check_agreement({row, budget, 1, decode}, heads, pair, tally);
  });
  CHECK(tally.runs > 0);
  CHECK(20 * tally.excused <= tally.runs);
}

}  // namespace

TEST_CASE("backends agree on every method in prefill") { check_rows({}, prefill_budgets(), false); }

TEST_CASE("backends agree on every method in decode") { check_rows({}, {24}, true); }

TEST_CASE("backends agree on contexts of many tiles, odd in every dimension") {
  check_rows({.n = many_tokens(), .decoded = 5, .d = 20, .dv = 17, .group = 2}, {many_tokens() * 97 / 331}, false);
}

TEST_CASE("methods that draw keep exactly the same tokens") {
  for_each_row_and_pair([&](const Row& row, Pair& pair) {
    if (row.info->name != "random" && row.info->name != "uniform") return;
    for (std::uint32_t seed = 0; seed < 20; ++seed) {
      const Run run{row, 16, seed};
      const Heads heads = Trial(row, *pair.trusted).heads();
      CHECK(same_decisions(outcome_of(run, heads, *pair.tested), outcome_of(run, heads, *pair.trusted)));
    }
  });
}

TEST_CASE("planted faults are detected") {
  const auto backend = make_ref_backend();
  const MethodInfo &sink = find_method("sink"), &oracle = find_method("oracle-topk");
  const Run plain{{&sink, sink.bind({})}, 12}, selecting{{&oracle, oracle.bind({})}, 12};
  const Heads heads = Trial(plain.row, *backend).heads();
  // Values of one token off by a thousandth: the same tokens are kept, their answers differ.
  Heads off = heads;
  for (Index c = 0; c < off[0].dv; ++c) off[0].values[static_cast<std::size_t>(c)] *= 1.01f;
  const Outcome right = outcome_of(plain, heads, *backend), wrong = outcome_of(plain, off, *backend);
  CHECK(same_decisions(right, wrong));
  CHECK_FALSE(difference(wrong, right).empty());
  CHECK(difference(right, right).empty());
  // Keys off by a tenth: other tokens are chosen, which small perturbations of the inputs do not explain.
  Heads other = heads;
  for (std::size_t i = 0; i < other[0].keys.size(); i += 3) other[0].keys[i] *= 1.1f;
  const Outcome chosen = outcome_of(selecting, heads, *backend);
  CHECK_FALSE(same_decisions(chosen, outcome_of(selecting, other, *backend)));
  CHECK_FALSE(undecided(selecting, heads, chosen, *backend));
}

TEST_CASE("a tie is undecided") {
  const auto backend = make_ref_backend();
  const MethodInfo& oracle = find_method("oracle-topk");
  const Run run{{&oracle, oracle.bind({})}, 12};
  Heads heads = Trial(run.row, *backend).heads();
  for (Index token = 1; token < heads[0].n; ++token) {  // all keys equal the first one
    std::copy_n(heads[0].keys.begin(), heads[0].d, heads[0].keys.begin() + token * heads[0].d);
  }
  CHECK(undecided(run, heads, outcome_of(run, heads, *backend), *backend));
}
