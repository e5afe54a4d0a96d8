// SPDX-License-Identifier: Apache-2.0
// retroinfer: keys are clustered, and a query reads the tokens of the clusters with the largest weights, while those of
// the clusters that follow are estimated by their centroid and the sum of their values. The rest is dropped.
// RetroInfer, arXiv 2505.02922, section 4; microsoft/RetrievalAttention, cache_hub/retroinfer_cache_gpu.py and
// kmeans.py.
//
// The S first and W last tokens answer every query. The t tokens between them form C = n / 16 clusters, in
// max(1, n / 8192) segments of equal length: their centred keys (minus their mean) are assigned to the centroid of
// their segment with the largest inner product, 9 times, and a centroid becomes the mean of its tokens divided by its
// norm; it starts as the token in the middle of the c-th part of the context, and stays as it is where no token is
// assigned. Then all tokens are assigned to all centroids, and each centroid becomes the mean of its tokens. A query of
// the group ranks clusters by the softmax of scale <q, centroid> over all clusters, summed over the query heads. The
// best are read whole; the next E are one entry each: key c, value the mean of the values, both with the number of
// tokens as weight.
// Of the B - S - W entries that are left the share `estimated` is for E, at most C, and clusters are read whole, best
// first, as long as they fit into the others; the first that does not is the first of the estimated ones.
//
// Parameters:
//   sinks      S, tokens, default 4 (released configuration)
//   window     W, tokens, default 64 (released configuration), at most half of what the first tokens leave of the
//              budget
//   tokens_per_cluster   default 16 (released code)
//   segment    tokens of a segment, default 8192 (released code)
//   iterations with normalised centroids, default 9 (released code); fewer where labels are fixed before
//   estimated  share of E, default 0.446: of the released shares, 0.232 / (0.232 + 0.018 * 16)
//   update     decoded tokens that are clustered together, in clusters of tokens_per_cluster, as soon as there are so
//              many beside the window; until then they answer every query, beyond B. Default 1024 (released code); 0:
//              never
//   least      context in tokens below which the method is infeasible, default 0 (released code: 16384 + 68)
//   max_pairs  of rows compared per head; above it is infeasible
// Complexity: O(i n C d / segments + n C d) once, i = 9, C = n / 16. O(C d) per query and query head to rank, O(B (d +
// dv)) to answer.
// Memory: the full cache; a centroid and a sum of values for each cluster, its size and where its tokens begin; the
// tokens are stored in the order of clusters, so that they need no numbers.
// Deviations, beside those of the notes: clusters without tokens take no part in the softmax of the ranking. Tokens of
// a clustered part that are left over by segments of equal length do not move centroids, as there. The cache of the GPU
// for clusters that were read before is not simulated (metrics cache_hit_*).
#include <algorithm>
#include <bit>
#include <optional>

#include <kvbench/methods/retrieval/estimated_clusters.hpp>
#include <kvbench/methods/retrieval/methods.hpp>
#include <kvbench/methods/stages/kept_cache.hpp>
#include <kvbench/methods/stages/parameters.hpp>
#include <kvbench/methods/stages/rows.hpp>

namespace kvbench::methods {
namespace {

struct RetroinferParams {
  Index sinks = 4;
  Index window = 64;
  Index tokens_per_cluster = 16;
  Index segment = 8192;
  Index iterations = 9;
  double estimated = 0.446;
  Index update = 1024;
  Index least = 0;
  PairLimit limit;
};
void fields(ParamVisitor& visitor, RetroinferParams& params) {
  visitor.integer("sinks", params.sinks, {.min = 0}, "first tokens that answer every query and are not clustered");
  visitor.integer("window", params.window, {.min = 0}, "last tokens that answer every query and are not clustered");
  visitor.integer("tokens_per_cluster", params.tokens_per_cluster, {.min = 1}, "tokens per cluster, on average");
  visitor.integer("segment", params.segment, {.min = 1}, "tokens whose clusters are trained together");
  visitor.integer("iterations", params.iterations, {.min = 0},
                  "maximum iterations of k-means with normalised centroids");
  visitor.real("estimated", params.estimated, {.min = 0, .max = 1},
               "share of the entries beside first and last tokens that stand for a cluster");
  visitor.integer("update", params.update, {.min = 0}, "decoded tokens that are clustered together; 0: never");
  visitor.integer("least", params.least, {.min = 0}, "tokens of the shortest context that is compressed");
  fields(visitor, params.limit);
}

/// Clusters of the tokens first, ..., first + keys.rows() - 1, in segments.
EstimatedClusters cluster(const RetroinferParams& params, const Buffer<const float>& keys,
                          const Buffer<const float>& values, Index first, Index tokens, Backend& backend) {
  const Index n = keys.rows();
  const auto rounded = [](Index a, Index b) { return std::max<Index>(1, (2 * a + b) / (2 * b)); };
  const Index segments = std::min(rounded(tokens, params.segment), n);
  const Index share = std::min(rounded(rounded(tokens, params.tokens_per_cluster), segments), n / segments);
  check_pairs(params.limit, "retroinfer",
              static_cast<double>(n) * static_cast<double>(share) * static_cast<double>(params.iterations + segments),
              "raise retroinfer.tokens_per_cluster");
  return segmented_clusters(keys, values, first, share * segments, segments, params.iterations, backend);
}

/// The keys and values of all tokens so far, those of clustered ones replaced by the means of their cluster: an
/// estimate reads the row of one token.
struct RowsByToken {
  GrowingRows keys, values;

  /// `clusters` are those of the tokens first, ..., first + count - 1.
  void replace(Index first, Index count, const EstimatedClusters& clusters, Backend& backend) {
    std::vector<std::int32_t> cluster(static_cast<std::size_t>(count));
    for (std::size_t c = 0; c < clusters.tokens.size(); ++c) {
      for (const TokenId id : clusters.tokens[c])
        cluster[static_cast<std::size_t>(id - first)] = static_cast<std::int32_t>(c);
    }
    const auto ids = backend.adopt(std::move(cluster), count);
    backend.run(
        kernels::GatherRows<Buffer>{.source = clusters.centroids, .ids = ids, .out = keys.rewrite(first, count)});
    backend.run(
        kernels::GatherRows<Buffer>{.source = clusters.values, .ids = ids, .out = values.rewrite(first, count)});
  }
};

/// The tokens between first and last ones of a context, clustered.
struct ClusteredContext {
  EstimatedClusters clusters;
  RowsByToken rows;
};

class RetroinferCache : public HeadCache {
 public:
  /// `clustered` is absent where no token lies between first and last ones.
  RetroinferCache(const HeadPrompt& head, const std::optional<ClusteredContext>& clustered,
                  const RetroinferParams& params, Index budget, Index sinks, Index window, Backend& backend)
      : HeadCache(head, backend),
        params_(params),
        value_numbers_(head.value_numbers()),
        context_(head.tokens()),
        budget_(budget),
        scale_(head.scale),
        sinks_(sinks),
        window_(window),
        tail_(window),
        centroids_(backend, clustered ? clustered->clusters.centroids : backend.allocate<float>(0, d_)),
        rows_{GrowingRows(backend, clustered ? clustered->rows.keys.rows() : head.keys),
              GrowingRows(backend, clustered ? clustered->rows.values.rows() : head.values)} {
    if (clustered) tokens_ = clustered->clusters.tokens;
  }

  /// Up to the token after which decoded ones are clustered.
  Index takes(const TokenBlock& tokens) override {
    if (params_.update == 0) return tokens.size();
    const Index room = window_ + params_.update - tail_;
    return std::min(tokens.size(), room == 0 ? params_.update : room);
  }
  void append(const TokenBlock& tokens) override {
    const Index count = tokens.size();
    if (params_.update > 0 && tail_ == window_ + params_.update) cluster_tail();
    copy_rows(tokens.keys, rows_.keys.add(count), backend_);
    copy_rows(tokens.values, rows_.values.add(count), backend_);
    tail_ += count;
    appended_ += count;
  }

  EntryTables entries(const QueryBlock& queries) const override {
    EntryTables tables;
    add_resident(0, sinks_, backend_, tables);
    if (clustered() > 0 && room() > 0 && queries.size() > 0) add_ranked(queries, tables);
    add_resident(context_ + appended_ - tail_, tail_, backend_, tables);
    return tables;
  }

  Footprint footprint() const override {
    const Index kept = sinks_ + tail_, clusters = std::ssize(tokens_);
    const auto meta = [](const char* name, Element element, Index rows, Index cols) {
      return FootprintArray{.name = name, .element = element, .rows = rows, .cols = cols, .content = Content::meta};
    };
    Footprint arrays = retrieved_footprint(clustered(), d_, dv_, "clustered ");
    arrays.insert(arrays.end(),
                  {
                      {.name = "first and last keys", .rows = kept, .cols = d_},
                      {.name = "first and last values", .rows = kept, .cols = dv_, .content = Content::values},
                      meta("centroids", Element::kv, clusters, d_),
                      meta("sums of values", Element::kv, clusters, value_numbers_),
                      meta("sizes and offsets", Element::i32, clusters, 2),
                      meta("chosen clusters", Element::i32, std::min(clusters, std::max<Index>(0, room())), 1),
                  });
    for (std::size_t a : {5, 6, 7}) arrays[a].read = Read::with_estimate;
    for (std::size_t a : {6, 7}) arrays[a].extra = queries_ > 0 ? read_ / queries_ : 0;
    return arrays;
  }

  Protected protected_tokens() const override {
    return {.sinks = sinks_, .recent = window_, .decoded = !clustered_decoded_};
  }
  TokenRange retrievable() const override { return {.first = sinks_, .count = clustered()}; }

 private:
  Index room() const { return budget_ - sinks_ - window_; }
  Index clustered() const { return context_ + appended_ - sinks_ - tail_; }

  void cluster_tail() {
    const Index count = params_.update, first = context_ + appended_ - tail_;
    const EstimatedClusters clusters = cluster(params_, rows_.keys.rows().slice(first, count),
                                               rows_.values.rows().slice(first, count), first, count, backend_);
    copy_rows(clusters.centroids, centroids_.add(std::ssize(clusters.tokens)), backend_);
    tokens_.insert(tokens_.end(), clusters.tokens.begin(), clusters.tokens.end());
    rows_.replace(first, count, clusters, backend_);
    tail_ = window_;
    clustered_decoded_ = true;
  }

  /// Clusters in falling order for each query, `most` of them, ties to the lower.
  std::vector<std::vector<std::int32_t>> ranked(const QueryBlock& queries, Index most) const {
    const Index m = queries.size(), rows = group_ * m, clusters = std::ssize(tokens_);
    const ScoredRows pass =
        scored_rows(queries.queries, centroids_.rows(),
                    std::vector(static_cast<std::size_t>(m), static_cast<std::int32_t>(clusters)), scale_, backend_);
    const auto weights = backend_.allocate<float>(rows, clusters), sums = backend_.allocate<float>(m, clusters);
    backend_.run(kernels::SoftmaxRows<Buffer>{.scores = pass.scores,
                                              .log_sum_exp = pass.log_sum_exp,
                                              .out = weights,
                                              .norm = backend_.allocate<float>(rows)});
    backend_.run(kernels::ReduceRows<Buffer>{.rows = weights, .mode = kernels::Reduction::sum, .out = sums});
    const std::vector<std::int32_t> best = backend_.read(best_columns(sums, 0, clusters, most, backend_));
    const HostView<float> host = backend_.on_host(Buffer<const float>(sums));
    std::vector<std::vector<std::int32_t>> order(static_cast<std::size_t>(m));
    std::vector<std::uint64_t> keys(static_cast<std::size_t>(most));
    for (Index i = 0; i < m; ++i) {
      // No weight is negative, so that weights order as their bits do.
      std::transform(best.begin() + i * most, best.begin() + (i + 1) * most, keys.begin(), [&](std::int32_t c) {
        const auto bits = std::bit_cast<std::uint32_t>(host[static_cast<std::size_t>(i * clusters + c)]);
        return std::uint64_t{~bits} << 32 | static_cast<std::uint32_t>(c);
      });
      std::ranges::sort(keys);
      for (const std::uint64_t key : keys) order[static_cast<std::size_t>(i)].push_back(static_cast<std::int32_t>(key));
    }
    return order;
  }

  /// Adds the tokens of the best clusters of each query, and the clusters that follow as one entry each.
  void add_ranked(const QueryBlock& queries, EntryTables& tables) const {
    const Index clusters = std::ssize(tokens_), m = queries.size();
    const bool all = clustered() <= room();
    const Index estimated =
        all ? 0 : std::min(clusters, static_cast<Index>(params_.estimated * static_cast<double>(room())));
    // Clusters have at least a token each, so that no more can be read or estimated than the budget has room for.
    const auto order = ranked(queries, std::min(clusters, room()));
    std::vector<std::int32_t> ids, of, entry_ids(static_cast<std::size_t>(m * estimated), -1);
    std::vector<float> weights(entry_ids.size(), 1);
    const Index width = std::max<Index>(1, std::min(clustered(), room() - estimated));
    queries_ += static_cast<double>(m);
    ids.assign(static_cast<std::size_t>(m * width), -1);
    of = ids;
    for (Index i = 0; i < m; ++i) {
      std::size_t rank = 0;
      Index slot = i * width, left = room() - estimated;
      const auto& own = order[static_cast<std::size_t>(i)];
      for (; rank < own.size() && std::ssize(members(own[rank])) <= left; ++rank) {
        left -= std::ssize(members(own[rank]));
        ++read_;
        for (const TokenId id : members(own[rank])) {
          ids[static_cast<std::size_t>(slot)] = id;
          of[static_cast<std::size_t>(slot++)] = own[rank];
        }
      }
      for (Index e = i * estimated; e < (i + 1) * estimated && rank < own.size(); ++e, ++rank) {
        entry_ids[static_cast<std::size_t>(e)] = members(own[rank]).back();
        weights[static_cast<std::size_t>(e)] = static_cast<float>(members(own[rank]).size());
      }
    }
    tables.push_back({.per_query = true,
                      .ids = backend_.adopt(std::move(ids), m, width),
                      .cluster_ids = backend_.adopt(std::move(of), m, width)});
    if (estimated == 0) return;
    const Buffer<const float> weight = backend_.adopt(std::move(weights), m, estimated);
    tables.push_back({.per_query = true,
                      .place = Place::estimated,
                      .ids = backend_.adopt(std::move(entry_ids), m, estimated),
                      .weight_num = weight,
                      .weight_den = weight,
                      .token_keys = rows_.keys.rows(),
                      .token_values = rows_.values.rows()});
  }

  const std::vector<TokenId>& members(std::int32_t cluster) const { return tokens_[static_cast<std::size_t>(cluster)]; }

  RetroinferParams params_;
  Index value_numbers_, context_, budget_;
  float scale_;
  Index sinks_, window_;
  Index tail_;                                ///< last tokens that are not clustered
  Index appended_ = 0;                        ///< decoded tokens
  GrowingRows centroids_;                     ///< [C, d]
  std::vector<std::vector<TokenId>> tokens_;  ///< [C]
  RowsByToken rows_;
  bool clustered_decoded_ = false;
  mutable double queries_ = 0, read_ = 0;  ///< so far, and the clusters that they read whole
};

MakeCache prepare(const HeadPrompt& head, const RetroinferParams& params, Backend& backend) {
  // Budgets with the same window share the clusters.
  const auto known = std::make_shared<std::pair<Index, std::optional<ClusteredContext>>>(-1, std::nullopt);
  return [=, &backend](Index budget, std::uint32_t) {
    const Index n = head.tokens();
    if (n < params.least) {
      throw Infeasible(
          fmt::format("retroinfer leaves contexts below {} tokens whole, and this one has {}; lower "
                      "retroinfer.least",
                      params.least, n));
    }
    const Index sinks = std::min({params.sinks, budget, n});
    const Index window = std::min({params.window, (budget - sinks) / 2, n - sinks}), count = n - sinks - window;
    if (known->first != sinks + window) {
      known->second.reset();
      if (count > 0) {
        known->second = {
            cluster(params, head.keys.slice(sinks, count), head.values.slice(sinks, count), sinks, n, backend),
            {GrowingRows(backend, head.keys), GrowingRows(backend, head.values)}};
        known->second->rows.replace(sinks, count, known->second->clusters, backend);
      }
      known->first = sinks + window;
    }
    return std::make_unique<RetroinferCache>(head, known->second, params, budget, sinks, window, backend);
  };
}

}  // namespace

MethodInfo retroinfer_method() {
  return with_params<RetroinferParams>(
      {
          .name = "retroinfer",
          .paper = "RetroInfer, arXiv 2505.02922, section 4",
          .summary = "clusters of keys: the best are read per query, the next are estimated by centroid and mean value",
          .notes = "The released code leaves contexts below 16384 tokens whole (least=16384) and has a budget in "
                   "clusters, 1.8 % read and 23.2 % estimated; here a budget in entries is divided in the same ratio. "
                   "Its numbers of clusters are multiples of 8.",
          .complexity = {.compress = {"O(n C d), C = n/16", 2},
                         .query = {"O(C d + B (d + dv))", 1},
                         .memory = {"n (d + dv) + C (d + dv)", 1}},
          .kind = Kind::retrieval,
          .properties = {.nested_budgets = Property::no("an estimated cluster is one token of it"),
                         .equal_bytes = Property::no("clusters that end without tokens are left out"),
                         .weight_sum = WeightSum::at_most_context},
      },
      prepare);
}

}  // namespace kvbench::methods
