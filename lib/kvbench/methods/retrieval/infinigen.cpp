// SPDX-License-Identifier: Apache-2.0
#include <kvbench/methods/retrieval/infinigen.hpp>

#include <algorithm>
#include <map>
#include <vector>

#include <kvbench/methods/contract/of_heads.hpp>
#include <kvbench/methods/retrieval/skew.hpp>
#include <kvbench/methods/stages/kept_cache.hpp>
#include <kvbench/methods/stages/per_block.hpp>
#include <kvbench/methods/stages/rows.hpp>

namespace kvbench::methods {
namespace {

/// The tokens that a query may fetch: [0, candidates), and its own token where the cache holds it.
struct Reach {
  Index candidates = 0;
  bool own = false;
  Index fetched = 0;  ///< number of candidates that are fetched
};

/// Speculated scores of one kv head, without their scale: [G*m or m, tokens].
struct SpeculatedScores {
  Buffer<const float> scores;
  float scale = 1;
};

/// Number of tokens above the threshold of each query, averaged over all heads of the layer.
std::vector<double> mean_counts(const std::vector<SpeculatedScores>& heads, const std::vector<Reach>& reach,
                                Index tokens, const InfinigenParams& params, Backend& backend) {
  const auto m = std::ssize(reach);
  std::vector<double> counts(reach.size());
  std::vector<float> head_zero(reach.size());
  Index rows = 0;
  for (const auto& [scores, scale] : heads) {
    const HostView<float> host = backend.on_host(scores);
    for (Index r = 0; r < scores.rows(); ++r, ++rows) {
      const auto i = static_cast<std::size_t>(r % m);
      const auto row =
          std::span(host).subspan(static_cast<std::size_t>(r * tokens), static_cast<std::size_t>(reach[i].candidates));
      if (row.empty()) continue;
      float largest = scale * *std::ranges::max_element(row);
      if (rows < m) head_zero[i] = largest;
      if (params.threshold == InfinigenParams::Threshold::head_zero) largest = head_zero[i];
      const double least = largest - params.alpha;
      counts[i] += static_cast<double>(
          std::ranges::count_if(row, [factor = scale, least](float x) { return factor * x >= least; }));
    }
  }
  const Index passes = rows / m;
  for (double& count : counts) count /= static_cast<double>(passes);
  return counts;
}

/// The best tokens of each row by `scores`; one top-k per number of tokens that occurs.
std::vector<std::vector<TokenId>> choose(const Buffer<const float>& scores, const std::vector<Reach>& reach,
                                         Backend& backend) {
  const auto reach_of_row = [&](Index row) { return reach[static_cast<std::size_t>(row % std::ssize(reach))]; };
  std::map<Index, std::vector<std::int32_t>> rows_by_count;
  for (Index r = 0; r < scores.rows(); ++r)
    rows_by_count[reach_of_row(r).fetched].push_back(static_cast<std::int32_t>(r));
  std::vector<std::vector<TokenId>> chosen(static_cast<std::size_t>(scores.rows()));
  for (const auto& [k, rows] : rows_by_count) {
    if (k == 0) continue;
    const Index count = std::ssize(rows);
    std::vector<std::int32_t> last;
    for (const std::int32_t r : rows) last.push_back(static_cast<std::int32_t>(reach_of_row(r).candidates));
    const auto best = backend.allocate<std::int32_t>(count, k);
    backend.run(kernels::TopK<Buffer>{.scores = count == scores.rows() ? scores : gathered(scores, rows, backend),
                                      .first = backend.adopt(std::vector<std::int32_t>(rows.size()), count),
                                      .last = backend.adopt(std::move(last), count),
                                      .ids = best});
    const std::vector<std::int32_t> ids = backend.read(best);
    for (Index r = 0; r < count; ++r) {
      chosen[static_cast<std::size_t>(rows[static_cast<std::size_t>(r)])].assign(ids.begin() + r * k,
                                                                                 ids.begin() + (r + 1) * k);
    }
  }
  return chosen;
}

/// The reach of each query of the block, the same for all kv heads of the layer. `heads` [kv heads]; `tokens` = tokens
/// in the cache.
std::vector<Reach> reach_of(const QueryBlock& block, const std::vector<SpeculatedScores>& heads, Index tokens,
                            Index budget, const InfinigenParams& params, Backend& backend) {
  std::vector<Reach> reach;
  for (const std::int32_t last : backend.read(block.last)) {
    const bool own = last <= tokens;
    const Index candidates = own ? last - 1 : tokens;
    reach.push_back({candidates, own, std::min(budget - own, candidates)});
  }
  if (params.fetch == InfinigenParams::Fetch::fixed) return reach;
  const std::vector<double> mean = mean_counts(heads, reach, tokens, params, backend);
  for (std::size_t i = 0; i < reach.size(); ++i) {
    Reach& r = reach[i];
    const auto cap = static_cast<Index>(params.max_share * static_cast<double>(r.candidates + r.own));
    r.fetched = std::min({r.fetched, static_cast<Index>(mean[i]), std::max<Index>(cap, r.own ? 0 : 1)});
  }
  return reach;
}

/// For each row of `scores` (g*m + i, or i): the tokens with the highest scores, as many as the query fetches, and the
/// query's own token.
EntryTable fetched_tokens(const Buffer<const float>& scores, const std::vector<Reach>& reach, Backend& backend) {
  const std::vector<std::vector<TokenId>> chosen = choose(scores, reach, backend);
  Index width = 0;
  for (const Reach& r : reach) width = std::max(width, r.fetched + r.own);
  std::vector<TokenId> ids(chosen.size() * static_cast<std::size_t>(width), -1);
  for (std::size_t r = 0; r < chosen.size(); ++r) {
    const Reach& of_query = reach[r % reach.size()];
    auto slot = std::ranges::copy(chosen[r], ids.begin() + static_cast<Index>(r) * width).out;
    if (of_query.own) *slot = static_cast<TokenId>(of_query.candidates);
  }
  return {.per_query = true, .ids = backend.adopt(std::move(ids), scores.rows(), width)};
}

void check_observed(const HeadPrompt& head, const char* where) {
  if (head.observed.present() && head.observed.rows() > 0) return;
  throw Unavailable(
      fmt::format("infinigen skews keys by the queries inside {}, and there are none; replay a trace that has them "
                  "(--queries all, or last:N with N above the window)",
                  where));
}

/// The partial keys of one kv head: one per query head, or one for all of them.
std::vector<Partial> make_partials(const HeadPrompt& head, const InfinigenParams& params, Backend& backend) {
  const bool by_both = params.columns == InfinigenParams::Columns::by_both;
  const HeadPrompt& offline = head.calibration ? *head.calibration : head;
  const HeadPrompt& chooses = by_both ? offline : head;
  check_observed(head, "the context");
  check_observed(offline, "the calibration text");
  const Index sets = params.group.per_head() ? head.group : 1;
  const auto of_set = [&](const HeadPrompt& prompt, Index s) {
    const Index rows = prompt.observed.rows() / sets;
    return prompt.observed.slice(s * rows, rows);
  };
  std::vector<Partial> partials;
  for (Index s = 0; s < sets; ++s) {
    SkewSample sample{.skewed_by = of_set(offline, s), .queries = of_set(chooses, s)};
    if (by_both) sample.keys = chooses.keys;
    partials.push_back(make_partial(sample, head.keys, params.ratio, backend));
  }
  return partials;
}

/// What the caches of all budgets of a head share.
struct PreparedHead {
  HeadPrompt prompt;
  std::vector<Partial> partials;
  std::shared_ptr<PerBlock<Buffer<const float>>> scores = std::make_shared<PerBlock<Buffer<const float>>>();
};

/// What the heads of a layer share at one budget: the scores of the queries that were announced, which together say
/// how many tokens each query fetches.
class LayerScores {
 public:
  LayerScores(std::size_t heads, Index budget, const InfinigenParams& params, Backend& backend)
      : scores_(heads), budget_(budget), params_(params), backend_(backend) {}

  void add(std::size_t head, SpeculatedScores scores) {
    scores_.add(head, std::move(scores));
    reach_.reset();
  }
  /// The reach of the queries of a block, which is announced on all heads.
  const std::vector<Reach>& reach(const QueryBlock& block, Index tokens) {
    if (!reach_) reach_ = reach_of(block, scores_.all(), tokens, budget_, params_, backend_);
    return *reach_;
  }

 private:
  OfHeads<SpeculatedScores> scores_;
  std::optional<std::vector<Reach>> reach_;
  Index budget_;
  InfinigenParams params_;
  Backend& backend_;
};

class InfinigenCache : public CompressedCache {
 public:
  InfinigenCache(const PreparedHead& head, std::size_t number, std::shared_ptr<LayerScores> layer,
                 const InfinigenParams& params, Index budget, Backend& backend)
      : backend_(backend),
        params_(params),
        prompt_(head.prompt),
        shared_(head.scores),
        number_(number),
        layer_(std::move(layer)),
        budget_(budget),
        tokens_(head.prompt.tokens()) {
    for (const Partial& partial : head.partials) {
      directions_.push_back(partial.directions);
      keys_.emplace_back(backend, partial.keys);
    }
  }

  Index takes(const TokenBlock& tokens) override { return tokens.size(); }
  void append(const TokenBlock& tokens) override {
    for (std::size_t s = 0; s < keys_.size(); ++s) {
      backend_.run(
          kernels::InnerProducts<Buffer>{.a = tokens.keys, .b = directions_[s], .out = keys_[s].add(tokens.size())});
    }
    tokens_ += tokens.size();
  }

  void announce(const QueryBlock& queries) override {
    if (tokens_ == 0) return;
    scores_ = speculate(queries);
    layer_->add(number_, {scores_, prompt_.scale});
  }
  EntryTables entries(const QueryBlock& queries) const override {
    if (tokens_ == 0) return {};
    EntryTable table = fetched_tokens(scores_, layer_->reach(queries, tokens_), backend_);
    table.per_head = params_.group.per_head();
    return {std::move(table)};
  }

  Footprint footprint() const override {
    const Index d = prompt_.keys.cols(), sets = std::ssize(keys_);
    Index columns = 0;
    for (const auto& directions : directions_) columns += directions.rows();
    Footprint arrays = retrieved_footprint(tokens_, d, prompt_.values.cols());
    arrays.insert(arrays.end(),
                  {
                      {.name = "partial keys", .rows = tokens_, .cols = columns, .content = Content::meta},
                      {.name = "skewed directions", .rows = columns, .cols = d, .content = Content::meta},
                      chosen_tokens(sets * std::min(budget_, tokens_)),
                  });
    return arrays;
  }

  TokenRange retrievable() const override { return {.count = tokens_}; }

  std::vector<Note> notes() const override {
    if (speculated_) return {};
    return {{.text = "query=true (upper bound), kv heads", .count = 1}};
  }

 private:
  /// The queries that score the tokens.
  const Buffer<const float>& scoring_queries(const QueryBlock& block) {
    if (block.speculated.present() && params_.query != InfinigenParams::Query::truth) return block.speculated;
    if (params_.query == InfinigenParams::Query::speculated) {
      throw Unavailable(
          "there are no speculated queries for this layer (the first layer never has any); use infinigen.query=auto, "
          "or replay a trace that has them (--speculated)");
    }
    speculated_ = false;
    return block.queries;
  }

  /// Speculated scores without their scale, [G*m or m, tokens].
  Buffer<const float> speculate(const QueryBlock& block) {
    const Buffer<const float>& queries = scoring_queries(block);
    return shared_->of(block, tokens_, [&] {
      const Index sets = std::ssize(keys_), rows = queries.rows() / sets;
      const auto scores = backend_.allocate<float>(queries.rows(), tokens_);
      for (Index s = 0; s < sets; ++s) {
        const auto at = static_cast<std::size_t>(s);
        backend_.run(kernels::InnerProducts<Buffer>{
            .a = inner_products(queries.slice(s * rows, rows), directions_[at], backend_),
            .b = keys_[at].rows(),
            .out = scores.slice(s * rows, rows)});
      }
      return group_scores(scores, block.size(), params_.group, backend_);
    });
  }

  Backend& backend_;
  InfinigenParams params_;
  HeadPrompt prompt_;
  std::vector<Buffer<const float>> directions_;
  std::vector<GrowingRows> keys_;
  std::shared_ptr<PerBlock<Buffer<const float>>> shared_;  ///< scores, of all budgets
  std::size_t number_;                                     ///< of the head in its layer
  std::shared_ptr<LayerScores> layer_;
  Buffer<const float> scores_;  ///< of the queries that were announced
  Index budget_, tokens_;
  bool speculated_ = true;  ///< no true query was used
};

MakeCaches prepare(std::span<const HeadPrompt> layer, const InfinigenParams& params, Backend& backend) {
  std::vector<PreparedHead> heads;
  for (const HeadPrompt& head : layer) heads.push_back({head, make_partials(head, params, backend)});
  return [heads, params, &backend](Index budget, std::uint32_t /*seed*/) {
    const auto scores = std::make_shared<LayerScores>(heads.size(), budget, params, backend);
    Caches caches;
    for (std::size_t h = 0; h < heads.size(); ++h)
      caches.push_back(std::make_unique<InfinigenCache>(heads[h], h, scores, params, budget, backend));
    return caches;
  };
}

}  // namespace

void fields(ParamVisitor& visitor, InfinigenParams& params) {
  visitor.choice("query", params.query, {"auto", "speculated", "true"},
                 "queries that score the tokens; auto: speculated if present");
  visitor.choice("columns", params.columns, {"q", "union"},
                 "columns with the largest queries, or the largest queries and keys");
  visitor.real("ratio", params.ratio, {.min = 0, .max = 1}, "share of the head's channels that scores use");
  visitor.choice("fetch", params.fetch, {"fixed", "dynamic"},
                 "number of tokens: the budget, or those with a score within alpha of the best");
  visitor.real("alpha", params.alpha, {.min = 0}, "distance from the largest score, in logits, fetch=dynamic");
  visitor.real("max_share", params.max_share, {.min = 0, .max = 1},
               "maximum share of the visible tokens, fetch=dynamic");
  visitor.choice("threshold", params.threshold, {"head", "head0"},
                 "head of the largest score: the head itself or head 0, fetch=dynamic");
  fields(visitor, params.group);
}

MethodInfo infinigen_method() {
  return with_params<InfinigenParams>(
      {
          .name = "infinigen",
          .paper = "InfiniGen, arXiv 2406.19707, section 4",
          .summary = "tokens fetched from slow memory by scores of a speculated query in a few skewed channels",
          .notes =
              "Speed code: columns=q, alpha 4; accuracy code: columns=union, alpha 5, for Llama threshold=head0. Both "
              "fetch at most a fifth of the tokens and leave layers 0 and 1 dense (--dense-layers 2). The comparison "
              "of ClusterKV uses a fixed budget. The released codes compute the skewing on another text (--calibrate), "
              "and the accuracy code the columns too; calibrated on the evaluated context, rows are too good. Without "
              "speculated queries in the trace the true ones are used, and the row reports that.",
          .complexity = {.compress = {"O((n + m) d^2), m observed queries", 1},
                         .query = {"O(n c + B (d + dv)), c columns", 1},
                         .memory = {"n (d + dv) + G n c", 1}},
          .kind = Kind::retrieval,
          .granularity = Granularity::layer,
          .needs = {Part::observed_queries},
          .calibrates_on = CalibratesOn::text,
          .speculates = true,
          .properties = {.key_shift = Property::no("columns=union depends on the magnitude of the keys"),
                         .equal_bytes = Property::no("columns=union: query heads may name the same columns")},
          .independent_heads =
              [](const Params& p) { return p.as<InfinigenParams>().fetch == InfinigenParams::Fetch::fixed; },
      },
      prepare);
}

}  // namespace kvbench::methods
