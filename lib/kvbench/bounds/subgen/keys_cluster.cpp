// SPDX-License-Identifier: Apache-2.0
// SubGen (arXiv 2402.06082), section 3.1 and Fig. 1: keys are more clusterable than values, seen with the centres of
// greedy k-center, k = 16, over 1024 tokens. Reading: the radius that covers all points with 16 centres, in units of
// the spread of the points, is smaller for keys than for values (subgen.keys_cluster). "The cluster centers
// corresponding to the key embeddings are evenly distributed across the entire embedding space": the clusters of keys
// are of more even sizes than those of values, and their centres are farther apart, in units of the spread
// (subgen.dispersion). The heads of the trace are the units. docs/theory/subgen.keys_cluster.md.
#include <kvbench/bounds/subgen/checks.hpp>

#include <algorithm>
#include <cmath>

#include <kvbench/bounds/check/vectors.hpp>
#include <kvbench/bounds/trials/contrast.hpp>
#include <kvbench/measures/curves.hpp>

namespace kvbench::bounds {
namespace {

constexpr Index covering_centres = 16, pictured_tokens = 1024;
constexpr std::size_t most_heads_compared = 256;

void run_subgen_keys_cluster(CheckContext& context) {
  const auto subjects = trace_subjects(*context.reader, {}, {}, 1);
  const std::size_t step = (subjects.size() + most_heads_compared - 1) / most_heads_compared;
  for (const Index limit : {pictured_tokens, Index{1} << 40}) {
    std::vector<double> differences;
    std::string exceptions;
    Index tokens = 0;
    for (std::size_t s = 0; s < subjects.size(); s += step) {
      context.poll();
      const Subject subject = subjects[s].load(context.backend);
      const Index n = std::min(limit, subject.tokens());
      if (n <= covering_centres)
        throw methods::Unavailable("the context is too short: 16 centres need more tokens than 16");
      const double keys =
          measures::clusterability(subject.head.keys.slice(0, n), covering_centres, context.backend).back();
      const double values =
          measures::clusterability(subject.head.values.slice(0, n), covering_centres, context.backend).back();
      differences.push_back(values - keys);
      tokens = std::max(tokens, n);
      if (values <= keys) {
        exceptions += fmt::format("{}layer {} head {} ({:.2f} against {:.2f})", exceptions.empty() ? "" : ", ",
                                  subject.head.layer.value, subject.head.head.value, keys, values);
      }
    }
    CheckRow& row = add_claim(context, {fmt::format("k=16, first {} tokens", tokens)}, contrast(differences),
                              "covering radius of values less that of keys, in spreads, over heads");
    row.text += "; other way round: " + (exceptions.empty() ? "no head" : exceptions) +
                "; the radius hangs on the farthest point; the paper shows a picture and no number";
  }
}

void run_subgen_dispersion(CheckContext& context) {
  const auto subjects = trace_subjects(*context.reader, {}, {}, 1);
  const std::size_t step = (subjects.size() + most_heads_compared - 1) / most_heads_compared;
  std::vector<double> evenness, distance;
  for (std::size_t s = 0; s < subjects.size(); s += step) {
    context.poll();
    const Subject subject = subjects[s].load(context.backend);
    const auto n = static_cast<std::size_t>(std::min(pictured_tokens, subject.tokens()));
    if (n <= covering_centres)
      throw methods::Unavailable("the context is too short: 16 centres need more tokens than 16");
    const auto dispersion = [&](const std::vector<float>& rows, Index width) {
      return centre_dispersion(std::span(rows).first(n * static_cast<std::size_t>(width)), width, covering_centres);
    };
    const CentreDispersion keys = dispersion(subject.keys, subject.d()),
                           values = dispersion(subject.values, subject.dv());
    evenness.push_back(keys.evenness - values.evenness);
    distance.push_back(keys.distance - values.distance);
  }
  const auto add_row = [&](const char* part, const std::vector<double>& differences, const char* what) {
    const std::string params = fmt::format("k={};tokens={};unit=head of a prompt", covering_centres, pictured_tokens);
    add_claim(context, {part, params}, contrast(differences), what).text += "; the paper shows a picture and no number";
  };
  add_row("centres evenly distributed", evenness, "evenness of the cluster sizes of keys less that of values");
  add_row("centres far apart", distance, "distance of the centres of keys less that of values, in distances of points");
}

}  // namespace

CentreDispersion centre_dispersion(std::span<const float> rows, Index d, Index centres) {
  const auto width = static_cast<std::size_t>(d), n = rows.size() / width;
  const auto row = [&](std::size_t i) { return rows.subspan(i * width, width); };
  std::vector<std::size_t> chosen = {0}, cluster(n, 0);
  std::vector<double> away;
  for (std::size_t i = 0; i < n; ++i) away.push_back(squared_distance(row(i), row(0)));
  while (std::ssize(chosen) < centres) {
    const auto farthest = static_cast<std::size_t>(std::ranges::max_element(away) - away.begin());
    for (std::size_t i = 0; i < n; ++i) {
      const double square = squared_distance(row(i), row(farthest));
      if (square < away[i]) away[i] = square, cluster[i] = chosen.size();
    }
    chosen.push_back(farthest);
  }
  std::vector<double> sizes(chosen.size());
  for (const std::size_t c : cluster) ++sizes[c];
  double entropy = 0, between = 0, spread = 0;
  for (const double size : sizes)
    entropy -= size > 0 ? size / static_cast<double>(n) * std::log(size / static_cast<double>(n)) : 0;
  for (const std::size_t a : chosen) {
    for (const std::size_t b : chosen) between += squared_distance(row(a), row(b));
  }
  // The mean square distance of two points is twice that to their mean.
  std::vector<double> mean_row(width);
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t c = 0; c < width; ++c) mean_row[c] += double{row(i)[c]} / static_cast<double>(n);
  }
  for (std::size_t i = 0; i < n; ++i) spread += squared_distance(row(i), mean_row);
  const auto k = static_cast<double>(chosen.size()), points = static_cast<double>(n);
  return {.evenness = std::exp(entropy) / k,
          .distance = spread > 0 ? std::sqrt(between / (k * (k - 1)) / (2 * spread / (points - 1))) : 0};
}

Check subgen_keys_cluster() {
  return {.id = "subgen.keys_cluster",
          .paper = "SubGen, arXiv 2402.06082, section 3.1, Fig. 1",
          .statement = "keys are more clusterable than values",
          .scope = Scope::trace,
          .run = run_subgen_keys_cluster};
}

Check subgen_dispersion() {
  return {.id = "subgen.dispersion",
          .paper = "SubGen, arXiv 2402.06082, section 3.1, Fig. 1",
          .statement = "the cluster centres of keys are evenly distributed over the space, those of values are not",
          .scope = Scope::trace,
          .run = run_subgen_dispersion};
}

}  // namespace kvbench::bounds
