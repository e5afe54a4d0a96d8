// SPDX-License-Identifier: Apache-2.0
#include <kvbench/methods/merging/bsm.hpp>

namespace kvbench::methods {
namespace {

MakeCache prepare(const HeadPrompt& head, const BsmParams& params, Backend& backend) {
  return prepare_merging(head, {.chunk = 0, .order = params.order, .method = "bsm", .limit = params.limit},
                         params.merging, backend);
}

}  // namespace

void fields(ParamVisitor& visitor, BsmParams& params) {
  fields(visitor, params.merging);
  fields(visitor, params.order);
  fields(visitor, params.limit);
}

MethodInfo bsm_method() {
  return with_params<BsmParams>(
      {
          .name = "bsm",
          .aliases = {"tome"},
          .paper = "ToMe, arXiv 2210.09461, section 3; as in Chelsea, arXiv 2506.11418, Table 1",
          .summary = "bipartite soft matching of keys over the whole context, weighted by degree",
          .notes = "One chunk; rounds, sinks, recent tokens and decoding as in `chelsea`. The released ToMe places A "
                   "before B after a round (order=concat); the default keeps the order of the text.",
          .complexity = {.compress = "O(n^2 d / 4)",
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
