// SPDX-License-Identifier: Apache-2.0
#include <kvbench/faithful/mutants/mutant.hpp>

#include <algorithm>
#include <cmath>
#include <iterator>

namespace kvbench::faithful {
namespace {

Mutant subgen_mutant(std::string id, std::string fault, std::string place,
                     const std::function<void(SubgenRules&)>& change) {
  SubgenRules rules;
  change(rules);
  return {.id = "subgen." + id,
          .method = "subgen",
          .fault = std::move(fault),
          .place = "Algorithm 1, " + place,
          .run = [rules](bounds::CheckContext& context) { run_subgen_rules(context, rules); }};
}

std::vector<Mutant> cluster_faults() {
  return {subgen_mutant("radius", "keys join a cluster within twice the radius", "line 13",
                        [](SubgenRules& rules) { rules.radius = 2; }),
          subgen_mutant("decoded-radius", "decoded keys join a cluster within twice the radius", "lines 1 and 13",
                        [](SubgenRules& rules) { rules.decoded_radius = 2; }),
          subgen_mutant("first-within", "a key joins the first representative within the radius, not the nearest",
                        "line 12", [](SubgenRules& rules) { rules.nearest = false; }),
          subgen_mutant("newest-represents", "the newest key of a cluster represents it", "line 21",
                        [](SubgenRules& rules) { rules.first_key_represents = false; }),
          subgen_mutant("samples-stay", "the samples of a cluster are never replaced", "line 17",
                        [](SubgenRules& rules) { rules.samples_replaced = false; }),
          subgen_mutant("size-off-by-one", "clusters of more than one key count one key too few", "lines 14 and 30",
                        [](SubgenRules& rules) {
                          rules.sample_weight = [](double size, double t) { return std::max(1.0, size - 1) / t; };
                        }),
          subgen_mutant("sample-sum", "the samples of a cluster are summed, not averaged", "line 30",
                        [](SubgenRules& rules) { rules.sample_weight = [](double size, double) { return size; }; })};
}

std::vector<Mutant> value_faults() {
  using Row = SubgenRules::Row;
  return {subgen_mutant("value-norm", "values are sampled by |v|", "line 26",
                        [](SubgenRules& rules) {
                          rules.value_weight = [](Row, Row value) { return std::sqrt(bounds::squared_norm(value)); };
                        }),
          subgen_mutant(
              "key-norm", "values are sampled by |k|^2", "line 26",
              [](SubgenRules& rules) { rules.value_weight = [](Row key, Row) { return bounds::squared_norm(key); }; }),
          subgen_mutant("any-value", "values are sampled uniformly", "line 26",
                        [](SubgenRules& rules) { rules.value_weight = [](Row, Row) { return 1.0; }; }),
          subgen_mutant("slot-weight", "slots weigh mu / (s |v|)", "line 29",
                        [](SubgenRules& rules) {
                          rules.slot_weight = [](double mu, double s, double weight) {
                            return mu / (s * std::sqrt(weight));
                          };
                        }),
          subgen_mutant("stale-mu", "mu lacks the newest token", "lines 6 and 7",
                        [](SubgenRules& rules) { rules.newest_in_mu = false; })};
}

std::vector<Mutant> draw_faults() {
  return {subgen_mutant("late-refill", "reservoirs are refilled one token late", "lines 17 and 26",
                        [](SubgenRules& rules) { rules.newest_in_total = false; }),
          subgen_mutant("decoded-lost", "decoded tokens are lost", "lines 3 to 8",
                        [](SubgenRules& rules) { rules.decoded_taken = false; }),
          subgen_mutant("shared-draws", "N and D share their draws", "lines 17 and 26",
                        [](SubgenRules& rules) { rules.cluster_draw = rules.value_draw; }),
          subgen_mutant("one-draw", "all slots of a list share one draw per token", "lines 16, 17, 25 and 26",
                        [](SubgenRules& rules) { rules.draw_step = 0; }),
          subgen_mutant("one-seed", "the draws do not depend on the seed", "lines 17 and 26",
                        [](SubgenRules& rules) { rules.seeded = false; })};
}

}  // namespace

std::vector<Mutant> subgen_mutants() {
  std::vector<Mutant> mutants = cluster_faults();
  std::ranges::move(value_faults(), std::back_inserter(mutants));
  std::ranges::move(draw_faults(), std::back_inserter(mutants));
  return mutants;
}

}  // namespace kvbench::faithful
