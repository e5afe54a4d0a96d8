// SPDX-License-Identifier: Apache-2.0
#include <kvbench/validate/figure_checks.hpp>

#include <algorithm>
#include <map>

#include <kvbench/sweep/cells_results.hpp>
#include <kvbench/sweep/collect.hpp>
#include <kvbench/sweep/run.hpp>

namespace kvbench::validate {
namespace {

using config::Published;
using config::SweepRun;
using sweep::SweepPlan;

/// Whether a relation of the claim names this method of the run.
bool named(const compare::PaperClaim& claim, const SweepRun& run, const replay::MethodChoice& method) {
  const compare::QueryConfiguration configuration{
      .method = method.info->name, .params = method.params.text(), .budget = {}};
  const auto is = [&](const std::string& name) {
    if (name.empty()) return false;
    compare::ConfigurationName parsed = compare::parse_configuration(name, "`a`");
    parsed.budget.reset();
    return matches(parsed, configuration);
  };
  return std::ranges::any_of(claim.relations, [&](const compare::Relation& r) {
    return (r.run.empty() || r.run == run.name) && (is(r.a) || is(r.b));
  });
}

/// The file with this claim alone, and the methods that it needs. Exclusions may match nothing in what is left, so that
/// they go: their cells are computed and not used.
config::Sweep only(config::Sweep sweep, const Published& published) {
  for (SweepRun& run : sweep.runs) {
    std::erase_if(run.request.methods,
                  [&](const replay::MethodChoice& method) { return !named(published.claim, run, method); });
    run.measures.clear();
    run.exclusions.clear();
  }
  std::erase_if(sweep.runs, [](const SweepRun& run) { return run.request.methods.empty(); });
  sweep.published = {published};
  return sweep;
}

/// The plan of the sweep on the trace of the check, whose owner outlives the check.
SweepPlan plan_on(const config::Sweep& sweep, const bounds::CheckContext& context) {
  return sweep::plan_sweep(sweep, {.threads = 1},
                           std::shared_ptr<const trace::Reader>(std::shared_ptr<void>(), context.reader));
}

compare::ClaimResult result_of(const config::Sweep& sweep, const bounds::CheckContext& context) {
  const SweepPlan plan = plan_on(sweep, context);
  const sweep::SweepLayout layout = layout_of(plan);
  std::vector<sweep::CellsFile> cells;
  cells.emplace_back("", sweep::FrameFile::Mode::scratch);
  run_sweep(plan, layout, {}, cells.front(), {.stop = context.stop});
  return test_claim(layout.claims.front(), layout, cells);
}

void add_row(bounds::CheckContext& context, const compare::RelationResult& result) {
  const compare::Comparison& comparison = result.comparison;
  const std::string place = test_text(result, false);
  bounds::TwoWayTest test{.p_value = result.p_value, .holds = result.holds};
  bounds::Figures figures;
  const bool tested = comparison.outcome != compare::Outcome::skipped;
  if (tested) {
    const auto [measured, bound] = comparison.means();
    figures = {.measured = measured, .bound = bound};
    test.p_least = comparison.decided_over_places() ? 0 : comparison.test.p_least;
    test.units = static_cast<Index>(comparison.units), test.units_needed = result.units_needed;
    if (comparison.decided_over_places()) test.over_places = comparison.tested_over;
  }
  bounds::CheckRow& row = context.claim({place.empty() ? result.relation : result.relation + ": " + place,
                                         comparison.run.empty() ? "" : "run=" + comparison.run},
                                        test, effect_text(result), figures);
  row.prompt = comparison.prompt;
  row.layer = comparison.layer;
  if (tested && comparison.seeds > 0) row.trials = static_cast<std::int64_t>(comparison.seeds);
}

/// Why the trace cannot serve this run of the file, such as a calibration on other layers; empty where it can.
std::string fault_of(const config::Sweep& sweep, const SweepRun& run, const bounds::CheckContext& context) {
  config::Sweep alone = sweep;
  alone.runs = {run};
  try {
    plan_on(alone, context);
  } catch (const Error& reason) {
    return reason.what();
  }
  return "";
}

/// Tests the relations of the runs that the trace can serve; those of the others are untestable, and the other checks
/// go on.
void run_claim(config::Sweep sweep, bounds::CheckContext& context) {
  std::map<std::string, std::string> faults;  // by name of the run
  std::erase_if(sweep.runs, [&](const SweepRun& run) {
    const std::string fault = fault_of(sweep, run, context);
    if (!fault.empty()) faults[run.name] = fault;
    return !fault.empty();
  });
  std::erase_if(sweep.published.front().claim.relations, [&](const compare::Relation& relation) {
    const auto fault =
        sweep.runs.empty() && !faults.contains(relation.run) ? faults.begin() : faults.find(relation.run);
    if (fault == faults.end()) return false;
    context.claim({describe(relation)}, {}, fault->second);
    return true;
  });
  if (sweep.published.front().claim.relations.empty()) return;
  try {
    for (const compare::RelationResult& result : result_of(sweep, context).results) add_row(context, result);
  } catch (const Error& reason) {
    context.claim({}, {}, reason.what());
  }
}

}  // namespace

std::vector<bounds::Check> figure_checks(const FigureFile& file) {
  std::vector<bounds::Check> checks;
  const config::Sweep sweep = config::read_sweep(file.path, file.text);
  for (const Published& published : sweep.published) {
    if (published.claim.id.empty() || published.claim.relations.empty()) continue;
    const config::Sweep part = only(sweep, published);
    checks.push_back({.id = published.claim.id,
                      .paper = fmt::format("{} ({})", sweep.description, file.path),
                      .statement = published.claim.text,
                      .method = compare::parse_configuration(published.claim.relations.front().a, "`a`").method,
                      .scope = bounds::Scope::trace,
                      .run = [part](bounds::CheckContext& context) { run_claim(part, context); }});
  }
  return checks;
}

std::span<const bounds::Check> figure_checks() {
  static const std::vector<bounds::Check> all = [] {
    std::vector<bounds::Check> checks;
    for (const FigureFile& file : figure_files()) std::ranges::move(figure_checks(file), std::back_inserter(checks));
    return checks;
  }();
  return all;
}

}  // namespace kvbench::validate
