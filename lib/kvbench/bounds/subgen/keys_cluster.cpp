// SPDX-License-Identifier: Apache-2.0
#include <kvbench/bounds/subgen/keys_cluster.hpp>

#include <algorithm>

#include <kvbench/bounds/clusterability.hpp>
#include <kvbench/bounds/contrast.hpp>

namespace kvbench {
namespace {

constexpr Index covering_centres = 16;
constexpr std::size_t most_heads_compared = 256;

void run_subgen_keys_cluster(CheckContext& context) {
  const auto subjects = trace_subjects(*context.reader, {}, {}, 1);
  const std::size_t step = (subjects.size() + most_heads_compared - 1) / most_heads_compared;
  for (const Index limit : {Index{1024}, Index{1} << 40}) {
    std::vector<double> differences;
    std::string exceptions;
    Index tokens = 0;
    for (std::size_t s = 0; s < subjects.size(); s += step) {
      context.poll();
      const Subject subject = subjects[s].load(context.backend);
      const Index n = std::min(limit, subject.tokens());
      if (n <= covering_centres) throw Unavailable("the context is too short: 16 centres need more tokens than 16");
      const double keys = clusterability(subject.head.keys.slice(0, n), covering_centres, context.backend).back();
      const double values = clusterability(subject.head.values.slice(0, n), covering_centres, context.backend).back();
      differences.push_back(values - keys);
      tokens = std::max(tokens, n);
      if (values <= keys) {
        exceptions += fmt::format("{}layer {} head {} ({:.2f} against {:.2f})", exceptions.empty() ? "" : ", ",
                                  subject.head.layer.value, subject.head.head.value, keys, values);
      }
    }
    CheckRow& row = context.add(CheckKind::claim, fmt::format("k=16, first {} tokens", tokens));
    set_claim(row, contrast(differences), "covering radius of values less that of keys, in spreads, over heads");
    row.text += "; other way round: " + (exceptions.empty() ? "no head" : exceptions) +
                "; the radius hangs on the farthest point; the paper shows a picture and no number";
  }
}

}  // namespace

Claim subgen_keys_cluster() {
  return {.id = "subgen.keys_cluster",
          .paper = "SubGen, arXiv 2402.06082, section 3.1, Fig. 1",
          .statement = "keys are more clusterable than values",
          .method = "subgen",
          .scope = Scope::trace,
          .run = run_subgen_keys_cluster};
}

}  // namespace kvbench
