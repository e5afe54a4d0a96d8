// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>

#include <doctest/doctest.h>

#include <kvbench/compare/configuration_name.hpp>
#include <kvbench/sweep/collect.hpp>
#include <kvbench/sweep/run.hpp>
#include <kvbench/validate/figure_checks.hpp>
#include <kvbench/validate/validate.hpp>

#include <unit/compare/made.hpp>
#include <unit/config/files.hpp>
#include <unit/sweep/sweeps.hpp>

using namespace kvbench;
using namespace kvbench::bounds;
using namespace kvbench::compare;
using namespace kvbench::replay;
using namespace kvbench::sweep;
using namespace kvbench::testing;
using namespace kvbench::validate;

namespace {

const std::string runs =
    "[defaults]\ntraces = \"t.h5\"\nprotocol = \"prefill\"\nwindow = 128\nbudgets = [\"25%\", \"50%\"]\nseeds = 3\n"
    "[[run]]\nname = \"a\"\nmethods = [\"uniform\", \"exact\", \"random\"]\n"
    "[[run]]\nname = \"unused\"\nmethods = [\"sink\"]\n";
const std::string claim =
    "[[published]]\nid = \"x.y\"\nclaim = \"c\"\nmetric = \"rel_err_mean\"\nrelations = [\n"
    "{ run = \"a\", a = \"exact\", is = \"lower\", b = \"uniform\", by = \"layer\" },\n"
    "{ run = \"a\", a = \"random\", is = \"lower\", b = \"uniform\" }]\n";

/// The trace of `runs`.
void write_trace(const SweepFiles& files, std::int64_t probes = 0) {
  trace::SynthOptions options = small_options();
  options.num_tokens = options.num_queries = 256;
  options.prompt_tokens = 128;
  options.probes = probes;
  trace::synthesize(files.folder / "t.h5", options);
}

std::vector<CheckRow> rows_of(const std::string& text, const trace::Reader& reader) {
  const std::string whole = text;
  const std::vector<Check> claims = figure_checks({"configs/x.toml", whole.c_str()});
  const auto found = find_checks(claims, {"x.y"}, {});
  FinishedRows finished;
  validate::validate(found, {}, &reader, {.threads = 1}, finished);
  return finished.judged(0.01);
}

SweepResults swept_by(const SweepFiles& files, const std::string& text) {
  const SweepPlan plan = plan_sweep(files.read(text));
  std::vector<CellsFile> cells;
  cells.emplace_back(files.folder / "c.cells", FrameFile::Mode::overwrite);
  cells.front().begin(layout_of(plan));
  run_sweep(plan, layout_of(plan), {}, cells.front());
  return collect(*cells.front().layout(), cells, Grain::trace);
}

}  // namespace

TEST_CASE("a check and the sweep of the same file give the same verdicts and the same numbers") {
  const SweepFiles files;
  write_trace(files);
  const SweepResults swept = swept_by(files, runs + claim);
  REQUIRE(swept.claims.size() == 1);
  const std::vector<CheckRow> checked = rows_of(runs + claim, trace::Reader(files.folder / "t.h5"));
  const std::vector<RelationResult>& results = swept.claims[0].results;
  REQUIRE(results.size() == 2 * 2 + 2);  // two layers and two budgets; two budgets
  REQUIRE(checked.size() == results.size());
  for (std::size_t i = 0; i < results.size(); ++i) {
    CHECK(checked[i].verdict == results[i].verdict);
    CHECK(checked[i].p_value == results[i].p_value);
    CHECK(checked[i].p_adjusted == results[i].comparison.p_adjusted);
    CHECK(checked[i].measured == results[i].comparison.means().first);
    CHECK(checked[i].bound == results[i].comparison.means().second);
    CHECK(checked[i].layer == results[i].comparison.layer);
    CHECK(results[i].comparison.seeds == 3);
  }
  CHECK(results[0].verdict == Verdict::supported);
}

TEST_CASE("a claim by predicted KL has the predictions of the rows, and a trace without probes cannot show it") {
  const std::string text =
      "[[run]]\nname = \"a\"\ntraces = \"t.h5\"\nprotocol = \"prefill\"\nwindow = 128\nbudgets = \"25%\"\nseeds = 1\n"
      "methods = [\"sink\", \"knorm\"]\n[[published]]\nid = \"x.y\"\nclaim = \"c\"\nmetric = [\"recall_mean\", "
      "\"kl_predicted\"]\nrelations = [{ a = \"sink\", is = \"lower\", b = \"knorm\" }]\n";
  const SweepFiles files, plain;
  write_trace(files, 16), write_trace(plain);
  const SweepResults swept = swept_by(files, text);
  REQUIRE(swept.claims.size() == 2);
  REQUIRE(swept.claims[1].results.size() == 1);
  const Comparison& kl = swept.claims[1].results[0].comparison;
  CHECK(kl.metric.name == "kl_predicted");
  const auto row = [&](const char* method) {
    return std::ranges::find_if(swept.records, [&](const Record& r) { return r.method == method && !r.layer; });
  };
  REQUIRE(row("sink")->kl.mean > 0);
  CHECK(kl.test.mean_a == doctest::Approx(row("sink")->kl.mean));
  CHECK(kl.test.mean_b == doctest::Approx(row("knorm")->kl.mean));
  const trace::Reader probed(files.folder / "t.h5"), without(plain.folder / "t.h5");
  const std::vector<CheckRow> checked = rows_of(text, probed), untestable = rows_of(text, without);
  REQUIRE(checked.size() == 2);
  CHECK(checked[0].measured == swept.claims[0].results[0].comparison.means().first);
  CHECK(checked[1].measured == kl.means().first);
  CHECK(checked[1].p_value == swept.claims[1].results[0].p_value);
  REQUIRE(untestable.size() == 2);
  CHECK(untestable[0].verdict != Verdict::untestable);
  CHECK(untestable[1].verdict == Verdict::untestable);
  CHECK(contains(untestable[1].text, "no text has probes"));
}

TEST_CASE("a trace that cannot serve the file makes a claim untestable") {
  const SmallTrace trace;  // 40 tokens, and a window of 128
  const std::vector<CheckRow> rows = rows_of(runs + claim, trace.reader());
  REQUIRE(rows.size() == 2);  // one per relation
  for (const CheckRow& row : rows) {
    CHECK(row.verdict == Verdict::untestable);
    CHECK(contains(row.text, "window"));
  }
  CHECK(rows[1].part == "random lower than uniform");
}

TEST_CASE("a run that the trace cannot serve leaves the relations of the others testable") {
  const SweepFiles files;
  write_trace(files);
  const trace::Reader reader(files.folder / "t.h5");
  const std::string two = runs + "[[run]]\nname = \"far\"\nlayers = [77]\nmethods = [\"uniform\", \"random\"]\n" +
                          "[[published]]\nid = \"x.y\"\nclaim = \"c\"\nmetric = \"rel_err_mean\"\nrelations = [\n"
                          "{ run = \"far\", a = \"random\", is = \"lower\", b = \"uniform\" },\n"
                          "{ run = \"a\", a = \"exact\", is = \"lower\", b = \"uniform\" }]\n";
  const std::vector<CheckRow> rows = rows_of(two, reader);
  REQUIRE(rows.size() == 3);  // the second relation at two budgets
  CHECK(rows[0].verdict == Verdict::untestable);
  CHECK(contains(rows[0].text, "77"));
  CHECK(rows[1].verdict != Verdict::untestable);
}

TEST_CASE("the files of configs/ are embedded, and their claims have ids of their own") {
  CHECK(figure_files().size() >= 13);
  std::vector<std::string> ids;
  for (const Check& check : all_checks()) ids.push_back(check.id);
  for (const Check& check : figure_checks()) ids.push_back(check.id);
  std::ranges::sort(ids);
  CHECK(std::ranges::adjacent_find(ids) == ids.end());
  CHECK(std::ranges::binary_search(ids, "balancekv.vs_uniform"));
}

// Claims of configs/ on methods published since 2024, on errors that are made up: each relation sees where its order is
// reversed, and is not supported by a method that makes no difference.

namespace {

config::Sweep read(const std::string& name) {
  const auto file = std::ranges::find(figure_files(), "configs/" + name + ".toml",
                                      [](const FigureFile& f) { return std::string(f.path); });
  REQUIRE(file != figure_files().end());
  return config::read_sweep(file->path, file->text);
}

/// Results of all configurations of a run: 2 everywhere, but `value` for those that the relation names as `a`.
Made results_of(const config::SweepRun& run, const Relation& relation, float value) {
  Made made("1", 128, 4, run.name);
  const ConfigurationName a = parse_configuration(relation.a, "`a`");
  for (const replay::MethodChoice& method : run.request.methods) {
    for (const Budget& budget : run.request.budgets) {
      const bool named = matches(
          a,
          {.method = method.info->name, .params = method.params.text(), .budget = budget, .seed = 0, .seeded = false});
      std::vector<std::uint32_t> seeds;
      if (method.depends_on_seed()) seeds = {0, 1, 2};
      made.with(method.info->name, constant(named ? value : 2), seeds, method.params.text(), budget.text());
    }
  }
  return made;
}

/// The verdicts at all budgets where the error of `a` is `value` and all others are 2.
std::set<Verdict> verdicts(const config::Sweep& sweep, const Relation& relation, float value) {
  const auto run = std::ranges::find_if(
      sweep.runs, [&](const config::SweepRun& r) { return relation.run.empty() || relation.run == r.name; });
  REQUIRE(run != sweep.runs.end());
  const Made made = results_of(*run, relation, value);
  const ClaimResult result = test_claim({.text = "planted", .relations = {relation}}, {&made});
  const bool at_one = parse_configuration(relation.a, "`a`").budget.has_value();
  CHECK(result.results.size() == (at_one ? 1 : run->request.budgets.size()));
  std::set<Verdict> found;
  for (const RelationResult& r : result.results) found.insert(r.verdict);
  return found;
}

}  // namespace

TEST_CASE("every relation about newer methods sees a planted reversal") {
  int relations = 0;
  for (const char* name : {"vs-snapkv", "coresets", "retrieval"}) {
    const config::Sweep sweep = read(name);
    for (const config::Published& published : sweep.published) {
      for (const Relation& relation : published.claim.relations) {
        CAPTURE(describe(relation));
        CHECK(verdicts(sweep, relation, 1) == std::set{Verdict::supported});
        CHECK(verdicts(sweep, relation, 3) == std::set{Verdict::contradicted});
        CHECK(verdicts(sweep, relation, 2) == std::set{Verdict::undecided});
        ++relations;
      }
    }
  }
  CHECK(relations >= 30);  // each by error and by predicted KL
}
