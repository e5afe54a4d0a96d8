// SPDX-License-Identifier: Apache-2.0
#include <kvbench/faithful/mutants/mutant.hpp>

#include <kvbench/bounds/chelsea/checks.hpp>
#include <kvbench/faithful/checks/checks.hpp>

namespace kvbench::faithful {
namespace {

Mutant chelsea_mutant(const std::string& name, const std::string& fault, const std::string& place,
                      const ChelseaRules& rules) {
  return {.id = "chelsea." + name,
          .method = "chelsea",
          .fault = fault,
          .place = "Chelsea, arXiv 2506.11418, " + place,
          .run = [chelsea = chelsea_with(rules)](bounds::CheckContext& context) {
            bounds::CheckContext algorithm = context.as("chelsea.algorithm"), bias = context.as("chelsea.bias"),
                                 theorem = context.as("chelsea.thm61");
            check_chelsea_algorithm(algorithm, chelsea);
            check_chelsea_bias(bias, chelsea({}));
            check_method_sides(theorem, chelsea);
          }};
}

}  // namespace

std::vector<Mutant> chelsea_mutants() {
  return {
      chelsea_mutant("halves", "A is the first half of a chunk and B the second", "section 5.2 and Theorem 6.1",
                     {.sides = ChelseaRules::Sides::halves}),
      chelsea_mutant("inner-product", "partners are compared by inner product", "section 3",
                     {.similarity = ChelseaRules::Similarity::inner_product}),
      chelsea_mutant("worst-partner", "an edge leads to the least similar token of B", "section 5.2",
                     {.best_partner = false}),
      chelsea_mutant("worst-edges", "the least similar pairs are merged", "section 5.2", {.best_edges = false}),
      chelsea_mutant("chunk-size", "a chunk has one entry too many", "section 5.2", {.chunk_excess = 1}),
      chelsea_mutant("round-size", "a round removes one entry too many", "Algorithm 1", {.merged_excess = 1}),
      chelsea_mutant("plain-means", "means of clusters ignore the degrees", "section 5.3", {.weighted_means = false}),
      chelsea_mutant("values", "a cluster keeps the value of its token of B", "section 5.3", {.merged_values = false}),
      chelsea_mutant("degrees", "a cluster keeps the degree of its token of B", "section 5.3",
                     {.added_degrees = false}),
      chelsea_mutant("weights", "clusters answer with weight 1", "Eq. 2", {.weights_are_degrees = false}),
      chelsea_mutant("sinks", "the first tokens are merged as others are", "section 5.2", {.sinks_kept = false}),
      chelsea_mutant("recent", "recent tokens are merged as others are", "section 5.2", {.recent_kept = false}),
      chelsea_mutant("decoded-lost", "decoded tokens are dropped", "section 3",
                     {.decoded = ChelseaRules::Decoded::lost}),
      chelsea_mutant("decoded-merged", "a decoded token is merged at once", "sections 5.1 and 5.2",
                     {.decoded = ChelseaRules::Decoded::merged}),
      chelsea_mutant("rounds", "shares start anew at every clustering of the decoding stage", "appendix C.2",
                     {.rounds_continue = false}),
  };
}

}  // namespace kvbench::faithful
