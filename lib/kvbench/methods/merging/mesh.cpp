// SPDX-License-Identifier: Apache-2.0
#include <kvbench/methods/merging/mesh.hpp>

namespace kvbench::methods {
namespace {

MakeCache prepare(const HeadPrompt& head, const MeshParams& params, Backend& backend) {
  return prepare_merging(head, {.matching = MergeRule::Matching::mesh, .method = "mesh", .limit = params.limit},
                         params.merging, backend);
}

}  // namespace

void fields(ParamVisitor& visitor, MeshParams& params) {
  fields(visitor, params.merging);
  fields(visitor, params.limit);
}

MethodInfo mesh_method() {
  return with_params<MeshParams>(
      {
          .name = "mesh",
          .paper = "Chelsea, arXiv 2506.11418, section 5.2 and Table 1",
          .summary = "every token linked to its most similar one among all pairs, merged by degree",
          .notes = "The text gives only the complexity of the matching; the chaining of links and the place of a group "
                   "are this project's reading. Quadratic: `infeasible` above mesh.max_pairs.",
          .complexity = {.compress = "O(n^2 d)",
                         .query = "O(B (d + dv))",
                         .memory = "B (d + dv) + B",
                         .growth = {.compress = 2, .query = 0, .memory = 0}},
          .kind = Kind::merging,
          .streaming = true,
          .properties = merging_properties(),
      },
      prepare);
}

}  // namespace kvbench::methods
