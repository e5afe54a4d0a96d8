// SPDX-License-Identifier: Apache-2.0
#include <kvbench/faithful/mutants/mutant.hpp>

#include <kvbench/faithful/checks/checks.hpp>

namespace kvbench::faithful {
namespace {

const char* const uniform_place = "BalanceKV, Fig. 2: n/m times the sum over m random tokens";
const char* const released_place = "BalanceKV, released baseline of Fig. 2 (methods/sampling/uniform_repo.cpp)";

Mutant uniform_mutant(const std::string& id, std::string fault, const std::function<void(UniformRules&)>& change) {
  UniformRules rules;
  change(rules);
  return {.id = "uniform." + id,
          .method = "uniform",
          .fault = std::move(fault),
          .place = uniform_place,
          .run = [rules](bounds::CheckContext& context) {
            bounds::CheckContext exact = context.as("uniform.samples");
            check_uniform(exact, [&](const bounds::StreamPlan& plan) {
              return uniform_oracle(*context.subject, plan, rules).times;
            });
          }};
}

Mutant released_mutant(const std::string& id, std::string fault, const std::function<void(UniformRepoRules&)>& change) {
  UniformRepoRules rules;
  change(rules);
  return {.id = "uniform-repo." + id,
          .method = "uniform-repo",
          .fault = std::move(fault),
          .place = released_place,
          .run = [rules](bounds::CheckContext& context) {
            bounds::CheckContext exact = context.as("uniform.samples");
            check_uniform_repo(exact, [&](const bounds::StreamPlan& plan, const UniformRepoSizes& sizes) {
              return uniform_repo_oracle(*context.subject, plan, sizes, rules).times;
            });
          }};
}

}  // namespace

std::vector<Mutant> baseline_mutants() {
  using Sample = UniformRules::Sample;
  return {
      uniform_mutant("weight", "weights are 1.3 times too large",
                     [](UniformRules& rules) { rules.weight = [](double n, double m) { return 1.3 * n / m; }; }),
      uniform_mutant("m-plus-one", "weights are n/(m+1)",
                     [](UniformRules& rules) { rules.weight = [](double n, double m) { return n / (m + 1); }; }),
      uniform_mutant("first-tokens", "the first m tokens are kept",
                     [](UniformRules& rules) { rules.sample = Sample::first_tokens; }),
      uniform_mutant("replacement", "tokens are drawn with replacement",
                     [](UniformRules& rules) { rules.sample = Sample::with_replacement; }),
      uniform_mutant(
          "decoded-weight", "decoded tokens have weight n/m",
          [](UniformRules& rules) { rules.decoded_weight = [](double n, double m) { return m > 0 ? n / m : 1; }; }),
      uniform_mutant("decoded-lost", "decoded tokens are lost",
                     [](UniformRules& rules) { rules.decoded_kept = false; }),
      uniform_mutant("one-seed", "the draws do not depend on the seed",
                     [](UniformRules& rules) { rules.seeded = false; }),
      released_mutant("plus-first", "the sort places +1 before -1",
                      [](UniformRepoRules& rules) { rules.minus_first = false; }),
      released_mutant("block-start", "the first token of a block has a fair sign",
                      [](UniformRepoRules& rules) { rules.first_is_plus = false; }),
      released_mutant("same-draws", "all rounds use the draws of the first",
                      [](UniformRepoRules& rules) { rules.new_draws_each_round = false; }),
      released_mutant(
          "rounds-off-by-one", "weights lack a factor 2",
          [](UniformRepoRules& rules) { rules.weight = [](double rounds) { return std::exp2(rounds - 1); }; }),
      released_mutant("window-weight", "the most recent tokens have the weight of halved ones",
                      [](UniformRepoRules& rules) { rules.window_exact = false; }),
  };
}

}  // namespace kvbench::faithful
