// SPDX-License-Identifier: Apache-2.0
#include <kvbench/methods/merging/kmeans.hpp>

#include <utility>

#include <kvbench/methods/merging/merged_context.hpp>
#include <kvbench/methods/stages/kept_cache.hpp>
#include <kvbench/methods/stages/rows.hpp>

namespace kvbench::methods {
namespace {

/// The non-empty clusters.
struct Members {
  std::vector<TokenId> clusters;  ///< ids of the clusters
  std::vector<TokenId> last;      ///< the last token of each
  std::vector<float> count;       ///< tokens of each
};

Members members_of(const std::vector<std::int32_t>& labels, Index clusters) {
  std::vector<TokenId> last(static_cast<std::size_t>(clusters), -1);
  std::vector<float> count(last.size(), 0);
  for (std::size_t j = 0; j < labels.size(); ++j) {
    const auto label = static_cast<std::size_t>(labels[j]);
    last[label] = static_cast<TokenId>(j);
    ++count[label];
  }
  Members members;
  for (std::size_t c = 0; c < last.size(); ++c) {
    if (last[c] < 0) continue;
    members.clusters.push_back(static_cast<TokenId>(c));
    members.last.push_back(last[c]);
    members.count.push_back(count[c]);
  }
  return members;
}

/// An entry for each cluster of the context: centroid, mean value and number of tokens.
EntryTable entries_of(const HeadPrompt& head, const Clustering& clustering, Backend& backend) {
  const Index all = clustering.centroids.rows();
  const auto values = backend.allocate<float>(all, head.values.cols()), mass = backend.allocate<float>(all);
  backend.run(kernels::MeanRows<Buffer>{.rows = head.values,
                                        .labels = backend.adopt(std::vector(clustering.labels), head.tokens()),
                                        .out = values,
                                        .mass = mass});
  Members members = members_of(clustering.labels, all);
  const auto width = static_cast<Index>(members.clusters.size());
  const auto rows = backend.adopt(std::move(members.clusters), width);
  const Buffer<const float> weights = backend.adopt(std::move(members.count), 1, width);
  return {.ids = backend.adopt(std::move(members.last), 1, width),
          .weight_num = weights,
          .weight_den = weights,
          .own_keys = gathered(clustering.centroids, rows, backend),
          .own_values = gathered(values, rows, backend)};
}

MakeCache prepare(const HeadPrompt& head, const KmeansParams& params, Backend& backend) {
  return [head, params, &backend](Index budget, std::uint32_t) -> std::unique_ptr<CompressedCache> {
    const Index n = head.tokens();
    if (budget >= n) return std::make_unique<KeptCache>(backend, head, KeptTokens{.ids = token_range(0, n)});
    check_pairs(params.limit, "kmeans",
                static_cast<double>(params.iterations) * static_cast<double>(n) * static_cast<double>(budget),
                "lower the budget or kmeans.iterations");
    std::vector<TokenId> start;
    for (Index i = 0; i < budget; ++i) start.push_back(static_cast<TokenId>(i * n / budget));
    const LloydOptions options{.distance = params.distance, .iterations = params.iterations};
    const Clustering clustering = lloyd(head.keys, start, options, backend);
    return std::make_unique<MergedContext>(head, entries_of(head, clustering, backend), "degrees", backend);
  };
}

}  // namespace

void fields(ParamVisitor& visitor, KmeansParams& params) {
  visitor.choice("distance", params.distance, {"cosine", "l2"}, "distance between keys and centroids");
  visitor.integer("iterations", params.iterations, {.min = 1}, "maximum iterations of k-means");
  fields(visitor, params.limit);
}

MethodInfo kmeans_method() {
  return with_params<KmeansParams>(
      {
          .name = "kmeans",
          .paper = "Chelsea, arXiv 2506.11418, Table 1",
          .summary = "k-means centroids in place of the tokens of the context, weighted by their number of tokens",
          .notes = "Chelsea's text does not give the distance, the initial centroids or the number of iterations of "
                   "this baseline.",
          .complexity = {.compress = "O(i n B d), i iterations",
                         .query = "O(B (d + dv))",
                         .memory = "B (d + dv) + B",
                         .growth = {.compress = 1, .query = 0, .memory = 0}},
          .kind = Kind::merging,
          .properties = {.key_shift = Property::no("directions of keys depend on the origin"),
                         .nested_budgets = Property::no("the clusters depend on their number"),
                         .weight_sum = WeightSum::context},
      },
      prepare);
}

}  // namespace kvbench::methods
