// SPDX-License-Identifier: Apache-2.0
#include <kvbench/methods/retrieval/clusterkv.hpp>

#include <algorithm>
#include <map>
#include <utility>

#include <kvbench/methods/stages/computed_once.hpp>
#include <kvbench/methods/stages/draws.hpp>
#include <kvbench/methods/stages/kept_cache.hpp>
#include <kvbench/methods/stages/rows.hpp>

namespace kvbench::methods {
namespace {

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
        tokens_(head_.head.tokens()) {
    if (head_.params.every > 0) {
      tail_keys_ = head_.backend.allocate<float>(head_.params.every, head_.head.keys.cols());
    }
  }

  Index takes(const TokenBlock& tokens) override {
    const Index every = head_.params.every, count = tokens.size();
    return every > 0 ? std::min(count, tail_ == every ? every : every - tail_) : count;
  }
  void append(const TokenBlock& tokens) override {
    const Index every = head_.params.every, count = tokens.size();
    if (every > 0 && tail_ == every) cluster_tail();
    if (every > 0) copy_rows(tokens.keys, tail_keys_.slice(tail_, count), head_.backend);
    tail_ += count;
    tokens_ += count;
  }

  EntryTables entries(const QueryBlock& queries) const override {
    EntryTables tables;
    const auto add_range = [&](Index first, Index count) {
      if (count > 0) tables.push_back({.ids = head_.backend.adopt(token_range(first, count), 1, count)});
    };
    add_range(0, sinks_);
    if (retrieves() && queries.size() > 0) {
      tables.push_back(index_.select(queries, room(), head_.params.fill, head_.params.group, head_.backend));
    }
    add_range(tokens_ - tail_, tail_);
    return tables;
  }

  Footprint footprint() const override {
    const Index d = head_.head.keys.cols(), dv = head_.head.values.cols(), clusters = index_.clusters();
    const Index recalled = index_.tokens(), kept = sinks_ + tail_;
    const Index lists = head_.params.group.per_head() ? head_.head.group : 1;
    // Entries are read from both tiers; all of these reads are counted at the arrays of the slow tier.
    Footprint arrays = retrieved_footprint(recalled, d, dv, "recallable ");
    arrays.insert(
        arrays.end(),
        {
            {.name = "sink and tail keys", .rows = kept, .cols = d, .read = Read::never},
            {.name = "sink and tail values", .rows = kept, .cols = dv, .read = Read::never, .content = Content::values},
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
            {.name = "chosen tokens",
             .element = Element::i32,
             .rows = retrieves() ? lists * std::min(room(), recalled) : 0,
             .cols = 1,
             .content = Content::meta},
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
    const Clustering clustering = head_.cluster(tail_keys_, first, head_.params.added);
    index_.add(clustering, first, head_.backend);
    capped_ += clustering.fixed ? 0 : 1;
    clustered_decoded_ = true;
    tail_ = 0;
  }

  ClusteredHead head_;
  ClusterIndex index_;
  Index capped_;
  Index budget_;
  Index sinks_;              ///< tokens of the context that answer every query
  Index tokens_;             ///< of the stream so far
  Index tail_ = 0;           ///< decoded tokens that are not clustered yet
  Buffer<float> tail_keys_;  ///< [every, d], rows in use: tail_
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

/// The parameters of both methods after their numbers of clusters.
template <class P>
void selection_fields(ParamVisitor& visitor, P& params) {
  visitor.choice("distance", params.distance, {"cosine", "l2", "ip"}, "distance between keys and centroids");
  visitor.integer("iterations", params.iterations, {.min = 1}, "maximum iterations of k-means");
  visitor.choice("fill", params.fill, {"trim", "pad"}, "last cluster: trim cuts it to the budget, pad takes it whole");
  fields(visitor, params.group);
  fields(visitor, params.limit);
}

constexpr const char* sinks_doc = "first tokens that answer every query and are not clustered";

Properties properties() {
  return {.key_shift = Property::no("directions of keys depend on the origin"),
          .head_permutation = Property::no("draws are keyed by the head")};
}

}  // namespace

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

MethodInfo clusterkv_method() {
  return with_params<ClusterkvParams>(
      {
          .name = "clusterkv",
          .paper = "ClusterKV, arXiv 2412.03213, sections III and IV",
          .summary = "clusters of keys, recalled per query by the inner product with their centroids",
          .notes = "L/80 clusters, iterated until labels are fixed, and 4 more for every 320 generated tokens, as in "
                   "the text. The released accuracy code is `clusterkv-repo`; the released efficiency code counts the "
                   "sinks outside the budget.",
          .complexity = {.compress = "O(i n C d), C = n/80, i iterations",
                         .query = "O(C d + B (d + dv))",
                         .memory = "n (d + dv) + C d",
                         .growth = {.compress = 2, .query = 1, .memory = 1}},
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
          .complexity = {.compress = "O(i n C d), C = 400, i iterations",
                         .query = "O(C d + B (d + dv))",
                         .memory = "n (d + dv) + C d",
                         .growth = {.compress = 1, .query = 0, .memory = 1}},
          .kind = Kind::retrieval,
          .granularity = Granularity::query_head,
          .seeded = true,
          .properties = properties(),
      },
      prepare_repo);
}

}  // namespace kvbench::methods
