// SPDX-License-Identifier: Apache-2.0
#include <kvbench/sweep/cells_results.hpp>

#include <fstream>

#include <doctest/doctest.h>

#include <kvbench/replay/replay.hpp>
#include <kvbench/sweep/run.hpp>
#include <unit/sweep/sweeps.hpp>

using namespace kvbench;
using namespace kvbench::compare;
using namespace kvbench::replay;
using namespace kvbench::sweep;
using namespace kvbench::testing;

TEST_CASE("cells give the values of a replay, by place and configuration") {
  const Sweeps sweeps;
  const SweepPlan plan = sweeps.plan(
      "[defaults]\ntraces = \"t.h5\"\n[[run]]\nname = \"a\"\nmethods = [\"uniform\", \"infinigen\"]\nbudgets = [8, "
      "9]\nseeds = [3, 5]\n"
      "[[run]]\nname = \"b\"\nmethods = \"uniform\"\nbudgets = 9\nseeds = [5]\nlayers = 1\n");
  const SweepLayout layout = layout_of(plan);
  const std::string path = sweeps.folder / "c.cells";
  {
    CellsFile file(path, FrameFile::Mode::overwrite);
    file.begin(layout);
    run_sweep(plan, layout, {}, file);
  }
  CHECK(is_cells_file(path));
  CHECK(!is_cells_file(sweeps.folder / "t.h5"));
  const CellsResults results(path, Metric::rel_err);
  REQUIRE(results.configurations().size() == 4 + 2);  // uniform at two budgets with two seeds, infinigen at two
  REQUIRE(results.places().size() == 8 + 4);          // 2 layers of 2 kv heads of 2 query heads; one layer
  const std::size_t steps[] = {0, 1};
  for (const std::size_t s : steps) {
    const ReplayResults replayed = replay::replay(*plan.steps[s].reader, plan.steps[s].request);
    for (std::size_t p = 0; p < results.places().size(); ++p) {
      const QueryPlace& place = results.places()[p];
      if (place.run != (s == 0 ? "a" : "b")) continue;
      const auto head = std::ranges::find_if(replayed.heads, [&](const HeadResult& h) {
        return h.layer == place.layer && h.place.kv_head == place.kv_head;
      });
      REQUIRE(head != replayed.heads.end());
      CHECK(head->positions == place.positions);
      std::size_t found = 0;
      for (std::size_t c = 0; c < results.configurations().size(); ++c) {
        const QueryConfiguration& wanted = results.configurations()[c];
        const auto values = results.read(p, c);
        for (std::size_t k = 0; k < replayed.configurations.size(); ++k) {
          const Configuration& key = replayed.configurations[k];
          if (replayed.methods[key.method].name != wanted.method || replayed.budgets[key.budget] != wanted.budget ||
              key.seed != wanted.seed) {
            continue;
          }
          ++found;
          REQUIRE(values);
          REQUIRE(values->values.size() == place.positions.size());
          const std::size_t first =
              static_cast<std::size_t>(place.query_head - 2 * place.kv_head) * place.positions.size();
          for (std::size_t i = 0; i < values->values.size(); ++i)
            CHECK(values->values[i] == head->results[k].metrics[first + i][Metric::rel_err]);
        }
      }
      CHECK(found == replayed.configurations.size());
    }
  }
}

TEST_CASE("missing cells have no values, and a file without a sweep is refused") {
  const Sweeps sweeps;
  const SweepPlan plan = sweeps.plan("[[run]]\ntraces = \"t.h5\"\nmethods = \"sink\"\n");
  const SweepLayout layout = layout_of(plan);
  const std::string path = sweeps.folder / "half.cells";
  {
    CellsFile file(path, FrameFile::Mode::overwrite);
    file.begin(layout);
    run_sweep(plan, layout, {1, 2}, file);
  }
  const CellsResults results(path, Metric::recall);
  CHECK(results.read(0, 0));
  CHECK(!results.read(7, 0));
  std::ofstream(sweeps.folder / "empty.cells");
  CHECK(contains(message_of<Error>([&] { CellsResults(sweeps.folder / "empty.cells", Metric::recall); }),
                 "nothing to compare"));
}
