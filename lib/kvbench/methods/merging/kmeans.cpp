// SPDX-License-Identifier: Apache-2.0
// kmeans: the keys of the context are clustered, and each cluster answers as one token: the mean of its keys, the mean
// of its values and the number of its tokens as weight. The baseline "K-Means" of Chelsea, arXiv 2506.11418, Table 1,
// with the weighted attention of its Eq. 2.
//
// For a budget of B tokens, B < n, Lloyd's loop starts from the tokens floor(i n / B), i = 0 .. B - 1. Centroids are
// means of the keys, not normalised; an empty cluster keeps its centroid during the loop and has no entry. B >= n keeps
// all tokens. Decoded tokens are kept exactly. An entry has the id of its cluster's last token, so that a cluster is
// visible only to queries that may attend to all of its tokens.
//
// Parameters:
//   distance    cosine (default: the metric of Chelsea's section 3) | l2
//   iterations  default 10 (no source: the text gives only the complexity); fewer where labels are fixed before
//   max_pairs   limit of iterations n B, default 2^37 (no source; minutes); above, `infeasible`
// Complexity: O(iterations n B d) per budget, more than the exact pass over a window of W queries as soon as iterations
// * B > W
// * G: this is the cost that Chelsea's Table 1 criticises.
// Memory: B (d + dv) numbers and B weights.
// Deviations: sinks and recent tokens are clustered like all others; --protect keeps them, as in Chelsea's comparison
// (16 and 64).
#include <utility>

#include <kvbench/methods/merging/merged_context.hpp>
#include <kvbench/methods/merging/methods.hpp>
#include <kvbench/methods/stages/kept_cache.hpp>
#include <kvbench/methods/stages/lloyd.hpp>
#include <kvbench/methods/stages/parameters.hpp>
#include <kvbench/methods/stages/rows.hpp>

namespace kvbench::methods {
namespace {

struct KmeansParams {
  Distance distance = Distance::cosine;  ///< cosine or l2
  Index iterations = 10;
  PairLimit limit;
};
void fields(ParamVisitor& visitor, KmeansParams& params) {
  visitor.choice("distance", params.distance, {"cosine", "l2"}, "distance between keys and centroids");
  visitor.integer("iterations", params.iterations, {.min = 1}, "maximum iterations of k-means");
  fields(visitor, params.limit);
}

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

MethodInfo kmeans_method() {
  return with_params<KmeansParams>(
      {
          .name = "kmeans",
          .paper = "Chelsea, arXiv 2506.11418, Table 1",
          .summary = "k-means centroids in place of the tokens of the context, weighted by their number of tokens",
          .notes = "Chelsea's text does not give the distance, the initial centroids or the number of iterations of "
                   "this baseline.",
          .complexity = {.compress = {"O(i n B d), i iterations", 1}, .memory = {"B (d + dv) + B"}},
          .kind = Kind::merging,
          .properties = {.key_shift = Property::no("directions of keys depend on the origin"),
                         .nested_budgets = Property::no("the clusters depend on their number"),
                         .equal_bytes = Property::no("equal keys leave clusters without tokens"),
                         .weight_sum = WeightSum::context},
      },
      prepare);
}

}  // namespace kvbench::methods
