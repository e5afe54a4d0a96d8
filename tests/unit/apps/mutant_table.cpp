// SPDX-License-Identifier: Apache-2.0
#include <apps/validate/mutant_table.hpp>

#include <doctest/doctest.h>

#include <kvbench/report/document/writers.hpp>
#include <unit/report/replay_lines.hpp>

using namespace kvbench;
using namespace kvbench::faithful;
using namespace kvbench::testing;

TEST_CASE("planted faults: the number that is caught comes first, then a row per fault, then what was missed and why") {
  const Mutant caught{.id = "a.one", .fault = "one fault", .place = "line 1"},
      missed{.id = "a.two", .fault = "other", .place = "line 2"},
      excepted{.id = "a.three", .fault = "third", .place = "line 3", .exception = "nobody can see it"};
  const std::vector<MutantResult> results = {
      {.mutant = &caught, .caught_by = {"c", "d"}, .ran = {"c", "d", "e"}, .first = "part: text"},
      {.mutant = &missed, .ran = {"c"}},
      {.mutant = &excepted, .ran = {"c"}}};
  const std::string text = report::terminal_text(mutant_summary(results));
  CHECK(text.starts_with("1 of 3 planted faults are caught by a violated row.\n"));
  CHECK(contains(text, "a.one    c d        one fault"));
  CHECK(contains(text, "missed: a.two (line 2): other\n"));
  CHECK(!contains(text, "missed: a.three"));
  CHECK(contains(text, "exception: a.three: nobody can see it\n"));
  CHECK(contains(csv_of(mutant_columns(), results), "a.one,,one fault,line 1,caught,c d,c d e,part: text,,"));
}
