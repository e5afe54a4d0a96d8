// SPDX-License-Identifier: Apache-2.0
// Claims of configs/ on methods published since 2024, on errors that are made up: each relation sees where its order is
// reversed, and is not supported by a method that makes no difference.
#include <algorithm>
#include <set>

#include <doctest/doctest.h>

#include <kvbench/compare/configuration_name.hpp>
#include <kvbench/sweep/figure_checks.hpp>
#include <unit/compare/made.hpp>
#include <unit/config/files.hpp>

using namespace kvbench;
using namespace kvbench::compare;
using namespace kvbench::testing;

namespace {

config::Sweep read(const std::string& name) {
  const auto file = std::ranges::find(sweep::figure_files(), "configs/" + name + ".toml",
                                      [](const sweep::FigureFile& f) { return std::string(f.path); });
  REQUIRE(file != sweep::figure_files().end());
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
