// SPDX-License-Identifier: Apache-2.0
// clusterkv: the keys of the prompt are clustered by direction, and a query is answered by the tokens of the clusters
// whose centroids have the largest inner products with it, recalled from the full cache. Tokens of similar keys are
// recalled together, wherever they are in the text. ClusterKV, arXiv 2412.03213, sections III and IV. `clusterkv-repo`
// is the method of the released accuracy code.
//
// The first `sinks` tokens answer every query and are not clustered. The other keys of a prompt of L tokens form C0
// clusters by Lloyd's loop from C0 random distinct tokens (those with the lowest draws; equal keys may start two
// clusters). Tokens are assigned by normalised keys and centroids, centroids are means of the keys as they are, an
// empty cluster keeps its centroid, and the loop ends when no label changes. A query ranks all clusters by <q,
// centroid> and takes their tokens until the sinks and these tokens fill the budget B. In decode the new tokens answer
// every query, beyond B, until there are `every` of them: after the query of the last of these they form `added`
// clusters of their own, which compete with the others for B from then on.
//
// Parameters (c = clusterkv, r = clusterkv-repo):
//   sinks       tokens, default 16 (section III-B; the released default); a budget of fewer tokens keeps the first B
//               only
//   clusters    C0; c: default 0 = one per `tokens_per_cluster` tokens, at least 1; r: default 400 (released default)
//   tokens_per_cluster   c only, default 80 (section III-B), of L with the sinks
//   distance    cosine (default, section III-B) | l2 | ip: of the clustering (their ablation, Fig. 11b)
//   iterations  c: default 300 (a cap, no source: the text iterates until labels are fixed); r: default 20 (released
//               default). Where the cap stops the loop, tokens are assigned once more to the last centroids, as in the
//               released code
//   every       c only: decoded tokens between clusterings, default 320 (section III-B); 0: they are never clustered. r
//               never clusters them: all generated tokens answer every query
//   added       c only: clusters of `every` decoded tokens, default 4 (section III-B)
//   fill        trim (default, section IV-C and the released default): the last cluster is cut to its earliest tokens,
//               so that exactly B tokens answer | pad (released option): it is taken whole, so that more than B tokens
//               may answer a query; the released code then pads the lists of a layer's heads to one length with tokens
//               of weight zero, which are omitted here
//   per         query_head (default, as in the released code) | kv_head: one ranking for the query group
//   reduce      mean (default; with per=kv_head the released gqa_policy=qavg) | max | sum of the group's inner products
//   max_pairs   limit of iterations n C0, default 2^38 (no source; minutes, as labels are fixed long before the cap);
//               above, `infeasible`. With C0 = n/80 and the cap of 300 iterations 270k tokens remain below it; r:
//               default 2^37
// Complexity: clustering O(iterations n C0 d) per seed, shared by all budgets; with C0 = n/80 this grows with n^2. A
// query costs O(C d) and O(C + B) to rank and list, per query head.
// Memory: the full cache on the slow tier; on the fast tier the sinks, the unclustered tail, and the index. The device
// cache of recent clusters is not counted; the metrics cache_hit_* simulate it.
// Deviations: selection and attention run in fp32. The released GPU selection pads its scores with the smallest
// positive float, so that negative scores rank below the padding; here they rank by value. The released code always
// keeps the first two layers whole (--dense-layers 2).
#include <algorithm>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include <kvbench/methods/contract/method.hpp>
#include <kvbench/methods/retrieval/methods.hpp>
#include <kvbench/methods/stages/draws.hpp>
#include <kvbench/methods/stages/kept_cache.hpp>
#include <kvbench/methods/stages/lloyd.hpp>
#include <kvbench/methods/stages/parameters.hpp>
#include <kvbench/methods/stages/per_block.hpp>
#include <kvbench/methods/stages/rows.hpp>

namespace kvbench::methods {
namespace {

// Clusters of tokens with their centroids, and the clusters that answer a query: those whose centroids have the largest
// inner products with it (ClusterKV, arXiv 2412.03213, sections III-C and IV-C).

/// Treatment of the last cluster where it exceeds the budget: trim cuts it to its earliest tokens, pad takes it whole.
enum class Fill { trim, pad };

/// A copy shares the centroids of the original.
class ClusterIndex {
 public:
  explicit ClusterIndex(Index d) : d_(d) {}

  /// Adds the clusters of the tokens first, first + 1, ... They get the next cluster ids.
  void add(const Clustering& clustering, Index first, Backend& backend);

  Index tokens() const { return static_cast<Index>(members_.size()); }
  Index clusters() const { return static_cast<Index>(begin_.size()) - 1; }

  /// The tokens that answer each query, with their cluster ids: those of the best clusters until `budget` tokens are
  /// selected. Ties go to the lower cluster; clusters without tokens are skipped.
  EntryTable select(const QueryBlock& queries, Index budget, Fill fill, const GroupChoice& choice,
                    Backend& backend) const;

 private:
  using Clusters = std::vector<std::int32_t>;

  Index size(std::int32_t cluster) const {
    return begin_[static_cast<std::size_t>(cluster) + 1] - begin_[static_cast<std::size_t>(cluster)];
  }
  /// Clusters in falling order of their scores, until they hold `budget` tokens together.
  Clusters best(std::span<const float> scores, Index budget) const;
  /// Number of tokens that a budget takes of these clusters, in order.
  Index taken(const Clusters& clusters, Index budget, Fill fill) const;

  Index d_;
  Buffer<const float> centroids_;   ///< [clusters, d]; absent without clusters
  std::vector<TokenId> members_;    ///< by cluster, in increasing order within each
  std::vector<Index> begin_ = {0};  ///< [clusters + 1] first member of each cluster
};

void ClusterIndex::add(const Clustering& clustering, Index first, Backend& backend) {
  const Index old = clusters(), added = clustering.centroids.rows();
  const auto all = backend.allocate<float>(old + added, d_);
  copy_rows(centroids_, all.slice(0, old), backend);
  copy_rows(clustering.centroids, all.slice(old, added), backend);
  centroids_ = all;

  // A counting sort by label leaves the tokens of each cluster in increasing order.
  std::vector<Index> next(static_cast<std::size_t>(added), 0);
  for (const std::int32_t label : clustering.labels) ++next[static_cast<std::size_t>(label)];
  for (Index& count : next) {
    const Index begin = begin_.back();
    begin_.push_back(begin + count);
    count = begin;
  }
  members_.resize(static_cast<std::size_t>(begin_.back()));
  for (std::size_t i = 0; i < clustering.labels.size(); ++i) {
    Index& slot = next[static_cast<std::size_t>(clustering.labels[i])];
    members_[static_cast<std::size_t>(slot++)] = static_cast<TokenId>(first + static_cast<Index>(i));
  }
}

ClusterIndex::Clusters ClusterIndex::best(std::span<const float> scores, Index budget) const {
  const auto lower = [&](std::int32_t a, std::int32_t b) {
    const float x = scores[static_cast<std::size_t>(a)], y = scores[static_cast<std::size_t>(b)];
    return x != y ? x < y : a > b;
  };
  Clusters heap = token_range(0, clusters()), chosen;
  std::ranges::make_heap(heap, lower);
  for (Index taken = 0; taken < budget && !heap.empty(); heap.pop_back()) {
    std::ranges::pop_heap(heap, lower);
    if (size(heap.back()) == 0) continue;
    chosen.push_back(heap.back());
    taken += size(heap.back());
  }
  return chosen;
}

Index ClusterIndex::taken(const Clusters& clusters, Index budget, Fill fill) const {
  Index held = 0;
  for (const std::int32_t cluster : clusters) held += size(cluster);
  return fill == Fill::trim ? std::min(held, budget) : held;
}

EntryTable ClusterIndex::select(const QueryBlock& queries, Index budget, Fill fill, const GroupChoice& choice,
                                Backend& backend) const {
  const auto products = inner_products(queries.queries, centroids_, backend);
  const Buffer<const float> scores = group_scores(products, queries.size(), choice, backend);
  const std::vector<float> host = backend.read(scores);
  const auto count = static_cast<std::size_t>(clusters());
  const Index rows = scores.rows();
  std::vector<Clusters> chosen;
  std::vector<Index> ends;
  for (Index r = 0; r < rows; ++r) {
    chosen.push_back(best(std::span(host).subspan(static_cast<std::size_t>(r) * count, count), budget));
    ends.push_back(taken(chosen.back(), budget, fill));
  }
  const Index width = rows == 0 ? 0 : *std::ranges::max_element(ends);
  std::vector<TokenId> ids(static_cast<std::size_t>(rows * width), -1);
  std::vector<std::int32_t> cluster_ids(ids.size(), -1);
  for (Index r = 0; r < rows; ++r) {
    Index slot = r * width, left = ends[static_cast<std::size_t>(r)];
    for (const std::int32_t cluster : chosen[static_cast<std::size_t>(r)]) {
      const Index tokens = std::min(size(cluster), left);
      std::copy_n(members_.begin() + begin_[static_cast<std::size_t>(cluster)], tokens, ids.begin() + slot);
      std::fill_n(cluster_ids.begin() + slot, tokens, cluster);
      slot += tokens;
      left -= tokens;
    }
  }
  return {.per_head = choice.per_head(),
          .per_query = true,
          .ids = backend.adopt(std::move(ids), rows, width),
          .cluster_ids = backend.adopt(std::move(cluster_ids), rows, width)};
}

struct ClusterkvParams {
  Index sinks = 16;
  Index clusters = 0;
  Index tokens_per_cluster = 80;
  Distance distance = Distance::cosine;
  Index iterations = 300;
  Index every = 320;
  Index added = 4;
  Fill fill = Fill::trim;
  GroupChoice group;
  PairLimit limit{.pairs = 0x1p38};  ///< labels are fixed long before `iterations`
};

struct ClusterkvRepoParams {
  Index sinks = 16;
  Index clusters = 400;
  Distance distance = Distance::cosine;
  Index iterations = 20;
  Fill fill = Fill::trim;
  GroupChoice group;
  PairLimit limit;
};

/// The input of the clusterings of one head, method and seed.
struct ClusteredHead {
  HeadPrompt head;
  ClusterkvParams params;
  std::string_view method;
  Draws draws;
  Backend& backend;

  /// Clusters `keys`, the keys of the tokens first, first + 1, ...; the initial centroids are the tokens with the
  /// lowest draws.
  Clustering cluster(const Buffer<const float>& keys, Index first, Index count) const {
    check_pairs(params.limit, method,
                static_cast<double>(params.iterations) * static_cast<double>(keys.rows()) * static_cast<double>(count),
                fmt::format("lower {0}.iterations, its cap, or {0}.clusters", method));
    std::vector<std::pair<double, TokenId>> drawn;
    for (Index i = 0; i < keys.rows(); ++i) drawn.emplace_back(draws.uniform(first + i), static_cast<TokenId>(i));
    std::ranges::sort(drawn);
    std::vector<TokenId> start;
    for (Index i = 0; i < std::min(count, keys.rows()); ++i) start.push_back(drawn[static_cast<std::size_t>(i)].second);
    std::ranges::sort(start);
    return lloyd(keys, start, {.distance = params.distance, .iterations = params.iterations, .relabel = true}, backend);
  }
};

/// The clusters of a prompt.
struct PromptClusters {
  ClusteredHead head;
  ClusterIndex index;
  Index capped = 0;  ///< clusterings that stopped at the cap of iterations
};

class ClusterkvCache : public CompressedCache {
 public:
  ClusterkvCache(const PromptClusters& prompt, Index budget)
      : head_(prompt.head),
        index_(prompt.index),
        capped_(prompt.capped),
        budget_(budget),
        sinks_(std::min({prompt.head.params.sinks, budget, prompt.head.head.tokens()})),
        tokens_(head_.head.tokens()),
        tail_keys_(head_.backend, head_.head.keys.slice(0, 0)) {}

  Index takes(const TokenBlock& tokens) override {
    const Index every = head_.params.every, count = tokens.size();
    return every > 0 ? std::min(count, tail_ == every ? every : every - tail_) : count;
  }
  void append(const TokenBlock& tokens) override {
    const Index every = head_.params.every, count = tokens.size();
    if (every > 0 && tail_ == every) cluster_tail();
    if (every > 0) copy_rows(tokens.keys, tail_keys_.add(count), head_.backend);
    tail_ += count;
    tokens_ += count;
  }

  EntryTables entries(const QueryBlock& queries) const override {
    EntryTables tables;
    add_resident(0, sinks_, head_.backend, tables);
    if (retrieves() && queries.size() > 0) {
      tables.push_back(index_.select(queries, room(), head_.params.fill, head_.params.group, head_.backend));
    }
    add_resident(tokens_ - tail_, tail_, head_.backend, tables);
    return tables;
  }

  Footprint footprint() const override {
    const Index d = head_.head.keys.cols(), dv = head_.head.values.cols(), clusters = index_.clusters();
    const Index recalled = index_.tokens(), kept = sinks_ + tail_;
    const Index lists = head_.params.group.per_head() ? head_.head.group : 1;
    const Index most = head_.params.fill == Fill::trim ? std::min(room(), recalled) : recalled;
    Footprint arrays = retrieved_footprint(recalled, d, dv, "recallable ");
    arrays.insert(arrays.end(),
                  {
                      {.name = "sink and tail keys", .rows = kept, .cols = d},
                      {.name = "sink and tail values", .rows = kept, .cols = dv, .content = Content::values},
                      {.name = "centroids", .rows = clusters, .cols = d, .content = Content::meta},
                      {.name = "cluster sizes and offsets",
                       .element = Element::i32,
                       .rows = clusters,
                       .cols = 2,
                       .content = Content::meta},
                      {.name = "tokens by cluster",
                       .element = Element::i32,
                       .rows = recalled,
                       .cols = 1,
                       .read = Read::with_entry,
                       .content = Content::meta},
                      chosen_tokens(retrieves() ? lists * most : 0),
                  });
    return arrays;
  }

  /// Until the first clustering of decoded tokens all of them are kept; afterwards any of them may be dropped.
  Protected protected_tokens() const override { return {.sinks = sinks_, .decoded = !clustered_decoded_}; }

  TokenRange retrievable() const override {
    return {.first = std::min(head_.params.sinks, head_.head.tokens()), .count = index_.tokens()};
  }

  std::vector<Note> notes() const override {
    if (capped_ == 0) return {};
    return {{"k-means stopped at its cap of iterations", static_cast<double>(capped_)}};
  }

 private:
  Index room() const { return budget_ - sinks_; }  ///< for retrieved tokens
  bool retrieves() const { return room() > 0 && index_.tokens() > 0; }

  void cluster_tail() {
    const Index first = tokens_ - tail_;
    const Clustering clustering = head_.cluster(tail_keys_.rows(), first, head_.params.added);
    tail_keys_.clear();
    index_.add(clustering, first, head_.backend);
    capped_ += clustering.fixed ? 0 : 1;
    clustered_decoded_ = true;
    tail_ = 0;
  }

  ClusteredHead head_;
  ClusterIndex index_;
  Index capped_;
  Index budget_;
  Index sinks_;            ///< tokens of the context that answer every query
  Index tokens_;           ///< of the stream so far
  Index tail_ = 0;         ///< decoded tokens that are not clustered yet
  GrowingRows tail_keys_;  ///< [tail_, d] where `every` is above 0
  bool clustered_decoded_ = false;
};

PromptClusters cluster_prompt(ClusteredHead clustered) {
  const HeadPrompt& head = clustered.head;
  const ClusterkvParams& params = clustered.params;
  const Index n = head.tokens(), sinks = std::min(params.sinks, n);
  PromptClusters prompt{clustered, ClusterIndex(head.keys.cols())};
  if (n > sinks) {
    const Index count = params.clusters > 0 ? params.clusters : std::max<Index>(1, n / params.tokens_per_cluster);
    const Clustering clustering = clustered.cluster(head.keys.slice(sinks, n - sinks), sinks, count);
    prompt.index.add(clustering, sinks, clustered.backend);
    prompt.capped = clustering.fixed ? 0 : 1;
  }
  return prompt;
}

MakeCache prepare_as(std::string_view name, const HeadPrompt& head, const ClusterkvParams& params, Backend& backend) {
  // Budgets share the clusters of a seed; those of another seed are dropped.
  const auto clusters = std::make_shared<std::map<std::uint32_t, PromptClusters>>();
  return [=, &backend](Index budget, std::uint32_t seed) {
    if (!clusters->contains(seed)) clusters->clear();
    const auto compute = [&] { return cluster_prompt({head, params, name, Draws(seed, name, head), backend}); };
    return std::make_unique<ClusterkvCache>(computed_once(*clusters, seed, compute), budget);
  };
}

MakeCache prepare(const HeadPrompt& head, const ClusterkvParams& params, Backend& backend) {
  return prepare_as("clusterkv", head, params, backend);
}

MakeCache prepare_repo(const HeadPrompt& head, const ClusterkvRepoParams& repo, Backend& backend) {
  const ClusterkvParams params{.sinks = repo.sinks,
                               .clusters = repo.clusters,
                               .distance = repo.distance,
                               .iterations = repo.iterations,
                               .every = 0,
                               .fill = repo.fill,
                               .group = repo.group,
                               .limit = repo.limit};
  return prepare_as("clusterkv-repo", head, params, backend);
}

constexpr const char* sinks_doc = "first tokens that answer every query and are not clustered";

/// The parameters of both methods after their numbers of clusters.
template <class P>
void selection_fields(ParamVisitor& visitor, P& params) {
  visitor.choice("distance", params.distance, {"cosine", "l2", "ip"}, "distance between keys and centroids");
  visitor.integer("iterations", params.iterations, {.min = 1}, "maximum iterations of k-means");
  visitor.choice("fill", params.fill, {"trim", "pad"}, "last cluster: trim cuts it to the budget, pad takes it whole");
  fields(visitor, params.group);
  fields(visitor, params.limit);
}

void fields(ParamVisitor& visitor, ClusterkvParams& params) {
  visitor.integer("sinks", params.sinks, {.min = 0}, sinks_doc);
  visitor.integer("clusters", params.clusters, {.min = 0},
                  "clusters of the prompt; 0: one per tokens_per_cluster tokens");
  visitor.integer("tokens_per_cluster", params.tokens_per_cluster, {.min = 1}, "tokens of the prompt per cluster");
  visitor.integer("every", params.every, {.min = 0}, "decoded tokens that are clustered together; 0: never");
  visitor.integer("added", params.added, {.min = 1}, "clusters of `every` decoded tokens");
  selection_fields(visitor, params);
}

void fields(ParamVisitor& visitor, ClusterkvRepoParams& params) {
  visitor.integer("sinks", params.sinks, {.min = 0}, sinks_doc);
  visitor.integer("clusters", params.clusters, {.min = 1}, "clusters of the prompt");
  selection_fields(visitor, params);
}

Properties properties() {
  return {.key_shift = Property::no("directions of keys depend on the origin"),
          .head_permutation = Property::no("draws are keyed by the head")};
}

}  // namespace

MethodInfo clusterkv_method() {
  return with_params<ClusterkvParams>(
      {
          .name = "clusterkv",
          .paper = "ClusterKV, arXiv 2412.03213, sections III and IV",
          .summary = "clusters of keys, recalled per query by the inner product with their centroids",
          .notes = "L/80 clusters, iterated until labels are fixed, and 4 more for every 320 generated tokens, as in "
                   "the text. The released accuracy code is `clusterkv-repo`; the released efficiency code counts the "
                   "sinks outside the budget.",
          .complexity = {.compress = {"O(i n C d), C = n/80, i iterations", 2},
                         .query = {"O(C d + B (d + dv))", 1},
                         .memory = {"n (d + dv) + C d", 1}},
          .kind = Kind::retrieval,
          .granularity = Granularity::query_head,
          .seeded = true,
          .properties = properties(),
      },
      prepare);
}

MethodInfo clusterkv_repo_method() {
  return with_params<ClusterkvRepoParams>(
      {
          .name = "clusterkv-repo",
          .paper = "ClusterKV, arXiv 2412.03213, released accuracy code",
          .summary = "clusterkv with 400 clusters for any length, 20 iterations, and generated tokens never clustered",
          .notes = "All generated tokens answer every query, beyond the budget. fill=pad takes the last cluster whole; "
                   "the released kernel path cuts it nevertheless.",
          .complexity = {.compress = {"O(i n C d), C = 400, i iterations", 1},
                         .query = {"O(C d + B (d + dv))"},
                         .memory = {"n (d + dv) + C d", 1}},
          .kind = Kind::retrieval,
          .granularity = Granularity::query_head,
          .seeded = true,
          .properties = properties(),
      },
      prepare_repo);
}

}  // namespace kvbench::methods
