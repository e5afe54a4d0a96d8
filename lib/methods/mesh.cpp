// SPDX-License-Identifier: Apache-2.0
#include <kvbench/methods/mesh.hpp>

namespace kvbench {
namespace {

std::shared_ptr<const Prepared> prepare(const HeadPrompt& head, const MeshParams& params, Backend& backend) {
  return prepare_merging(head, {.matching = MergeRule::Matching::mesh, .max_entries = params.max_tokens}, params.merging,
                         backend);
}

}  // namespace

void fields(ParamVisitor& visitor, MeshParams& params) {
  fields(visitor, params.merging);
  visitor.integer("max_tokens", params.max_tokens, {.min = 2}, "entries that a round may compare with each other");
}

MethodInfo mesh_method() {
  return with_params<MeshParams>(
      {
          .name = "mesh",
          .aliases = {},
          .paper = "Chelsea, arXiv 2506.11418, section 5.2 and Table 1",
          .summary = "every token linked to its most similar one, all pairs compared, merged by degree",
          .notes = "The text gives the matching's complexity alone; how links chain and where a group stands is this project's "
                   "reading. Quadratic: infeasible above mesh.max_tokens.",
          .kind = Kind::merge,
          .streaming = true,
          .properties = merging_properties(),
      },
      prepare);
}

}  // namespace kvbench
