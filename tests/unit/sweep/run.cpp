// SPDX-License-Identifier: Apache-2.0
#include <kvbench/sweep/run.hpp>

#include <filesystem>
#include <fstream>

#include <doctest/doctest.h>

#include <kvbench/replay/replay.hpp>
#include <kvbench/sweep/collect.hpp>
#include <kvbench/sweep/merge.hpp>
#include <unit/sweep/sweeps.hpp>

using namespace kvbench;
using namespace kvbench::replay;
using namespace kvbench::sweep;
using namespace kvbench::testing;
using Mode = FrameFile::Mode;

namespace {

const std::string two_runs = R"(
[[run]]
name = "first"
traces = "t.h5"
methods = ["sink", "random", "infinigen"]
budgets = [8, 12]
seeds = 2
measure = "similarity-by-distance"
[[run]]
name = "second"
traces = ["t.h5", "u.h5"]
protocol = "prefill"
methods = "exact"
)";

SweepResults run_all(const SweepPlan& plan, const ReplayHooks& hooks = {}) {
  std::vector<CellsFile> files;
  files.emplace_back("", Mode::scratch);
  const SweepLayout layout = layout_of(plan);
  run_sweep(plan, layout, {}, files.front(), hooks);
  return collect(layout, files, Grain::query);
}

}  // namespace

TEST_CASE("a sweep gives the records and measures of its runs, named and in order") {
  const Sweeps sweeps;
  const SweepPlan plan = sweeps.plan(two_runs);
  std::vector<std::pair<double, Index>> progress;
  const SweepResults results =
      run_all(plan, {.progress = [&](double done, Index total) { progress.emplace_back(done, total); }});
  std::vector<std::string> runs;
  for (const Record& r : results.records) {
    if (!r.kv_head) runs.push_back(r.run + " " + r.trace + " " + r.method + " " + r.budget.text());
  }
  // Three rows each: all layers, and each of two.
  CHECK(runs.size() == 3 * (3 * 2 + 1 + 1));
  CHECK(runs[0] == "first t.h5 sink 8");
  CHECK(runs[3] == "first t.h5 random 12");
  CHECK(runs[18] == "second t.h5 exact 25%");
  CHECK(runs.back() == "second u.h5 exact 25%");
  CHECK(results.measures.size() == 4 * 39);
  CHECK(results.measures.front().run == "first");
  // Work items: 4 heads to replay for methods of one head, 4 for infinigen, and 4 to measure; then 4 and 4 to replay.
  CHECK(std::ranges::is_sorted(progress));
  CHECK(std::ranges::all_of(progress, [](const auto& report) { return report.second == 20; }));
  CHECK(progress.back().first == 20);

  const std::vector<Record> alone =
      summarize(replay::replay(*plan.steps[0].reader, plan.steps[0].request, plan.steps[0].options), Grain::query);
  for (std::size_t i = 0; i < alone.size(); ++i) {
    CHECK(alone[i].method == results.records[i].method);
    const Summary &one = alone[i].of(Metric::rel_err), &other = results.records[i].of(Metric::rel_err);
    CHECK(same(one.mean, other.mean));
    CHECK(same(one.hi, other.hi));
    CHECK(alone[i].run.empty());
  }
}

TEST_CASE("an interruption ends the sweep") {
  const Sweeps sweeps;
  const SweepPlan plan = sweeps.plan("[[run]]\ntraces = \"t.h5\"\nmethods = \"sink\"\n");
  const std::atomic<bool> stop = true;
  CHECK_THROWS_AS(run_all(plan, {.stop = &stop}), Interrupted);
}

TEST_CASE("a sweep that was interrupted anywhere continues to the same results, and computes only missing cells") {
  const Sweeps sweeps;
  const SweepPlan plan = sweeps.plan(two_runs);
  const SweepLayout layout = layout_of(plan);
  const SweepResults whole = run_all(plan);
  const std::string path = sweeps.folder / "c.cells";
  {
    CellsFile file(path, Mode::overwrite);
    file.begin(layout);
    run_sweep(plan, layout, {}, file);
  }
  const auto size = std::filesystem::file_size(path);
  for (const double share : {0.0, 0.3, 0.5, 0.77, 0.999, 1.0}) {
    CAPTURE(share);
    const std::string cut = sweeps.folder / "cut.cells";
    std::filesystem::copy_file(path, cut, std::filesystem::copy_options::overwrite_existing);
    std::filesystem::resize_file(cut, static_cast<std::uintmax_t>(share * static_cast<double>(size)));
    std::vector<CellsFile> files;
    files.emplace_back(cut, Mode::append);
    const Standing standing = standing_of(plan, layout, {}, files.front());
    CHECK(standing.cells == 4 * 3 + 4 + 4 + 4);
    CHECK((share < 1) == (standing.finished < standing.cells));
    files.front().begin(layout);
    double items = 0;
    run_sweep(plan, layout, {}, files.front(), {.progress = [&](double done, Index) { items = done; }});
    CHECK((items == 0) == (standing.finished == standing.cells));
    CHECK(standing_of(plan, layout, {}, files.front()).finished == standing.cells);
    check_same(collect(layout, files, Grain::query), whole);
  }
}

TEST_CASE("joined shards equal a single run, also where they hold cells twice") {
  const Sweeps sweeps;
  const SweepPlan plan = sweeps.plan(two_runs);
  const SweepLayout layout = layout_of(plan);
  std::vector<std::string> paths;
  for (std::size_t i = 1; i <= 3; ++i) {
    paths.push_back(sweeps.folder / (std::to_string(i) + ".cells"));
    CellsFile file(paths.back(), Mode::overwrite);
    file.begin(layout);
    run_sweep(plan, layout, {i, 3}, file);
  }
  const Merged merged = open_shards(paths);
  CHECK(merged.notes.empty());
  CHECK(missing_cells(merged.layout, merged.files).empty());
  check_same(collect(merged.layout, merged.files, Grain::query), run_all(plan));

  const Merged part = open_shards({paths[0], paths[2]});
  const auto missing = missing_cells(part.layout, part.files);
  REQUIRE(!missing.empty());
  CHECK(contains(missing.front(), "(run '"));
  bool said = false;
  for (const Record& r : collect(part.layout, part.files, Grain::layer).records) {
    said = said || contains(r.reason, "parts: not computed");
  }
  CHECK(said);

  std::filesystem::copy_file(paths[0], sweeps.folder / "again.cells");
  paths.push_back(sweeps.folder / "again.cells");
  CHECK(contains(open_shards(paths).notes.at(0), "in more than one file, with equal results"));
}

TEST_CASE("files of different sweeps are rejected") {
  const Sweeps sweeps;
  const auto computed = [&](const std::string& text, const std::string& name, bool other_value = false) {
    const SweepPlan plan = sweeps.plan(text);
    const SweepLayout layout = layout_of(plan);
    CellsFile file(sweeps.folder / name, Mode::overwrite);
    file.begin(layout);
    if (other_value) {
      for (const CellEntry& cell : layout.steps[0].cells)
        file.add(cell.key, CellBlock{{ConfigurationResult{.status = Status::failed}}});
    } else {
      run_sweep(plan, layout, {}, file);
    }
    return sweeps.folder / name;
  };
  const std::string one = "[[run]]\ntraces = \"t.h5\"\nmethods = \"sink\"\n";
  const std::string a = computed(one, "a.cells"), b = computed(one + "budgets = 9\n", "b.cells"),
                    c = computed(one, "c.cells", true);
  CHECK(contains(message_of<Error>([&] { open_shards({a, b}); }), "their sweep files differ"));
  CHECK(contains(message_of<Error>([&] { open_shards({a, c}); }), "different results for sink on layer 0, kv head 0"));
  std::ofstream(sweeps.folder / "empty.cells");
  CHECK(contains(message_of<Error>([&] { open_shards({sweeps.folder / "empty.cells"}); }), "has no cells of a sweep"));
}

TEST_CASE("cells are used by another sweep where their keys are equal") {
  const Sweeps sweeps;
  const std::string one = "[[run]]\ntraces = \"t.h5\"\nmethods = [\"sink\", \"exact\"]\nlayers = 0\n";
  CellsFile file(sweeps.folder / "c.cells", Mode::overwrite);
  const auto finished = [&](const std::string& text) {
    const SweepPlan plan = sweeps.plan(text);
    const SweepLayout layout = layout_of(plan);
    const Standing standing = standing_of(plan, layout, {}, file);
    file.begin(layout);
    run_sweep(plan, layout, {}, file);
    return std::pair(standing.finished, standing.cells);
  };
  using Pair = std::pair<std::size_t, std::size_t>;
  CHECK(finished(one) == Pair{0, 4});
  CHECK(finished(one) == Pair{4, 4});
  CHECK(finished("[[run]]\ntraces = \"t.h5\"\nmethods = [\"uniform\", \"sink\"]\n") == Pair{2, 8});  // sink on layer 0
  CHECK(finished(one + "budgets = 9\n") == Pair{0, 4});                                              // another budget
  CHECK(finished(one + "window = 5\nprotocol = \"prefill\"\n") == Pair{0, 4});
  const std::string heads = sweeps.folder / "heads.txt";
  const std::string chelsea =
      "[[run]]\ntraces = \"t.h5\"\nbudgets = 20\nmethods = { name = \"chelsea\", sinks = 1, recent = 1, slack = 1, "
      "outliers = \"" +
      heads + "\" }\n";
  std::ofstream(heads) << "0 0\n";
  CHECK(finished(chelsea).first == 0);
  CHECK(finished(chelsea).first > 0);
  std::ofstream(heads) << "0 1\n";
  CHECK(finished(chelsea).first == 0);  // another file under the same name
  trace::SynthOptions other = small_options();
  other.seed += 1;
  trace::synthesize(sweeps.folder / "t.h5", other);
  CHECK(finished(one) == Pair{0, 4});  // another trace under the same name
}

TEST_CASE("keys depend on the computation and the instruction set, not on threads, memory and raw results") {
  const Sweeps sweeps;
  const auto layout = [&](const RunOptions& options) {
    return encode_layout(layout_of(plan_sweep(sweeps.read(two_runs), options)));
  };
  const std::string plain = layout({});
  CHECK(layout({.threads = 3, .memory = 1e9, .read_ahead_bytes = 0, .keep_raw = true}) == plain);
  CHECK(layout({.isa = best_isa()}) == plain);
  CHECK(layout({.backend = "ref"}) != plain);
  if (best_isa() != Isa::scalar) CHECK(layout({.isa = Isa::scalar}) != plain);
  config::Sweep alone = sweeps.read(two_runs);
  for (config::SweepRun& run : alone.runs) run.request.standalone = true;
  CHECK(encode_layout(layout_of(plan_sweep(alone))) != plain);
}
