// SPDX-License-Identifier: Apache-2.0
#include <kvbench/methods/retrieval/infinigen.hpp>

#include <algorithm>

#include <kvbench/methods/stages/growing_rows.hpp>
#include <kvbench/methods/retrieval/infinigen_reach.hpp>
#include <kvbench/methods/stages/levels.hpp>
#include <kvbench/methods/retrieval/skew.hpp>
#include <kvbench/methods/stages/stages.hpp>

namespace kvbench {
namespace {

/// One kv head: its partials, by query head or one for all.
std::vector<Partial> make_partials(const HeadPrompt& head, const InfinigenParams& params, Backend& backend) {
  if (!head.observed.present() || head.observed.rows() == 0) {
    throw Unavailable(
        "infinigen skews keys by the queries inside the context, and the trace has none; dump with --queries all, or last:N "
        "with N above the window");
  }
  const Index sets = params.group.per_head() ? head.group : 1, rows = head.observed.rows() / sets;
  const bool by_keys = params.columns == InfinigenParams::Columns::by_both;
  std::vector<Partial> partials;
  for (Index s = 0; s < sets; ++s) {
    partials.push_back(make_partial(head.observed.slice(s * rows, rows), head.keys, params.ratio, by_keys, backend));
  }
  return partials;
}

/// The part of a kv head's state that grows.
struct HeadState {
  HeadPrompt prompt;
  std::vector<Buffer<const float>> directions;
  std::vector<GrowingRows> keys;
};

class InfinigenCache : public LayerCache {
 public:
  InfinigenCache(const std::vector<HeadPrompt>& heads, const std::vector<std::vector<Partial>>& partials,
                 const InfinigenParams& params, Index budget, Backend& backend)
      : backend_(backend), params_(params), budget_(budget), tokens_(heads.front().tokens()), guessed_(heads.size(), true) {
    for (std::size_t h = 0; h < heads.size(); ++h) {
      HeadState& state = heads_.emplace_back(HeadState{heads[h], {}, {}});
      for (const Partial& partial : partials[h]) {
        state.directions.push_back(partial.directions);
        state.keys.emplace_back(backend, partial.keys);
      }
    }
  }

  Index append(std::span<const TokenBlock> tokens) override {
    const Index count = tokens.front().size();
    for (std::size_t h = 0; h < heads_.size(); ++h) {
      for (std::size_t s = 0; s < heads_[h].keys.size(); ++s) {
        backend_.run(kernels::InnerProducts<Buffer>{
            .a = tokens[h].keys, .b = heads_[h].directions[s], .out = heads_[h].keys[s].add(count)});
      }
    }
    tokens_ += count;
    return count;
  }

  std::vector<EntryTables> entries(std::span<const QueryBlock> queries) const override {
    if (tokens_ == 0) return std::vector<EntryTables>(heads_.size());
    std::vector<SpeculatedScores> scores;  // a fixed number of tokens does not depend on them
    for (std::size_t h = 0; h < heads_.size() && params_.fetch == InfinigenParams::Fetch::dynamic; ++h) {
      scores.push_back({speculate(h, queries[h]), heads_[h].prompt.scale});
    }
    const std::vector<Reach> reach = reach_of(queries.front(), scores, tokens_, budget_, params_, backend_);
    const auto nests = [&](Index largest) { return fetch_alike(reach, largest, params_); };
    std::vector<EntryTables> tables;
    for (std::size_t h = 0; h < heads_.size(); ++h) {
      asked(h, queries[h]);  // notes whose query it is, also where a larger budget has fetched for this one
      const auto by_level = [&](std::span<const Index> budgets) -> std::vector<EntryTable> {
        if (budgets.size() > 1 || nests(budgets.front())) return levels(h, queries[h], reach, budgets);
        const auto own_scores = scores.empty() ? speculate(h, queries[h]) : scores[h].scores;
        EntryTable table = fetched_tokens(queries[h], own_scores, reach, backend_);
        table.per_head = params_.group.per_head();
        return {table};
      };
      tables.push_back(nested_tables(queries[h], budget_, backend_, nests, by_level));
    }
    return tables;
  }

  std::vector<Footprint> footprint() const override {
    std::vector<Footprint> heads;
    for (const HeadState& head : heads_) {
      const Index d = head.prompt.keys.cols(), sets = std::ssize(head.keys);
      Index columns = 0;
      for (const auto& directions : head.directions) columns += directions.rows();
      heads.push_back({
          {.name = "keys", .rows = tokens_, .cols = d, .tier = Tier::slow, .read = Read::with_entry},
          {.name = "values", .rows = tokens_, .cols = head.prompt.values.cols(), .tier = Tier::slow, .read = Read::with_entry},
          {.name = "partial keys", .rows = tokens_, .cols = columns, .meta = true},
          {.name = "skewed directions", .rows = columns, .cols = d, .meta = true},
          {.name = "chosen tokens",
           .element = Element::i32,
           .rows = sets * std::min(budget_, tokens_),
           .cols = 1,
           .meta = true},
      });
    }
    return heads;
  }

  std::vector<Protected> protected_tokens() const override { return std::vector<Protected>(heads_.size()); }

  std::vector<Note> notes() const override {
    const auto heads = std::ranges::count(guessed_, false);
    if (heads == 0) return {};
    return {{.text = "query=true (upper bound), kv heads", .count = static_cast<double>(heads)}};
  }

 private:
  /// The queries that a deployment would have when it fetches.
  const Buffer<const float>& asked(std::size_t h, const QueryBlock& block) const {
    if (block.speculated.present() && params_.query != InfinigenParams::Query::truth) return block.speculated;
    if (params_.query == InfinigenParams::Query::speculated) {
      throw Unavailable(
          "the trace has no speculated queries for this layer (the first layer never has); dump with --speculated, or use "
          "infinigen.query=auto");
    }
    guessed_[h] = false;
    return block.queries;
  }

  /// Speculated scores without their scale, [G*m or m, tokens]: the same for all budgets.
  Buffer<const float> speculate(std::size_t h, const QueryBlock& block) const {
    struct Speculated {
      Buffer<const float> scores;
    };
    const Buffer<const float>& queries = asked(h, block);
    const auto compute = [&] { return Speculated{score(heads_[h], queries, block.size())}; };
    return block.memo == nullptr ? compute().scores : block.memo->get<Speculated>(backend_, compute).scores;
  }

  Buffer<const float> score(const HeadState& head, const Buffer<const float>& queries, Index m) const {
    const Index sets = std::ssize(head.keys), rows = queries.rows() / sets;
    const auto scores = backend_.allocate<float>(queries.rows(), tokens_);
    for (Index s = 0; s < sets; ++s) {
      const auto at = static_cast<std::size_t>(s);
      backend_.run(
          kernels::InnerProducts<Buffer>{.a = inner_products(queries.slice(s * rows, rows), head.directions[at], backend_),
                                         .b = head.keys[at].rows(),
                                         .out = scores.slice(s * rows, rows)});
    }
    return group_scores(scores, m, params_.group, backend_);
  }

  /// The tokens that each row fetches, by level of falling budgets.
  std::vector<EntryTable> levels(std::size_t h, const QueryBlock& block, const std::vector<Reach>& reach,
                                 std::span<const Index> budgets) const {
    const Index rows = params_.group.per_head() ? block.queries.rows() : block.size();
    std::vector<std::int32_t> last;
    for (Index r = 0; r < rows; ++r) {
      last.push_back(static_cast<std::int32_t>(reach[static_cast<std::size_t>(r % block.size())].candidates));
    }
    std::vector<Index> counts;
    for (const Index budget : budgets) counts.push_back(budget - reach.front().own);
    const Range range{backend_.adopt(std::vector<std::int32_t>(last.size()), rows), backend_.adopt(std::vector(last), rows)};
    std::vector<EntryTable> tables;
    for (const auto& ids : counts.size() > 1 && params_.group.per_head()
                               ? best_of_parts(h, block, range, counts)
                               : best_by_level(block, speculate(h, block), range.first, range.last, counts, backend_)) {
      tables.push_back({.per_head = params_.group.per_head(), .per_query = true, .ids = ids});
    }
    if (reach.front().own) tables.back().ids = with_own(tables.back().ids, last);
    return tables;
  }

  struct Range {
    Buffer<const std::int32_t> first, last;  ///< by row
  };

  /// As best_by_level() of all speculated scores, which are formed for some rows at a time: what is looked at once only need
  /// not leave the processor's cache.
  std::vector<Buffer<const std::int32_t>> best_of_parts(std::size_t h, const QueryBlock& block, const Range& range,
                                                        std::span<const Index> counts) const {
    constexpr Index part_scores = Index{1} << 21, part_rows = 64;
    const Index rows = block.queries.rows(), m = block.size();
    const std::vector<Buffer<std::int32_t>> levels = level_buffers(rows, counts, backend_);
    for (Index begin = 0, count; begin < rows; begin += count) {
      count = std::min(std::clamp<Index>(part_scores / tokens_, 1, part_rows), m - begin % m);
      const auto set = static_cast<std::size_t>(begin / m);
      const auto directed = inner_products(asked(h, block).slice(begin, count), heads_[h].directions[set], backend_);
      std::vector<Buffer<std::int32_t>> part;
      for (const auto& level : levels) part.push_back(level.slice(begin, count));
      best_by_level(inner_products(directed, heads_[h].keys[set].rows(), backend_), range.first.slice(begin, count),
                    range.last.slice(begin, count), counts, part, block.memo.get(), backend_);
    }
    return {levels.begin(), levels.end()};
  }

  /// Each row's ids and after them its own token.
  Buffer<const std::int32_t> with_own(const Buffer<const std::int32_t>& ids, const std::vector<std::int32_t>& own) const {
    const std::vector<std::int32_t> chosen = backend_.read(ids);
    std::vector<TokenId> all;
    for (Index r = 0; r < ids.rows(); ++r) {
      all.insert(all.end(), chosen.begin() + r * ids.cols(), chosen.begin() + (r + 1) * ids.cols());
      all.push_back(own[static_cast<std::size_t>(r)]);
    }
    return backend_.adopt(std::move(all), ids.rows(), ids.cols() + 1);
  }

  Backend& backend_;
  InfinigenParams params_;
  Index budget_, tokens_;
  std::vector<HeadState> heads_;
  mutable std::vector<bool> guessed_;  ///< by head: no true query was used; entries() learns it, notes() tells
};

class InfinigenPrepared : public PreparedLayer {
 public:
  InfinigenPrepared(std::span<const HeadPrompt> heads, const InfinigenParams& params, Backend& backend)
      : heads_(heads.begin(), heads.end()), params_(params), backend_(backend) {
    for (const HeadPrompt& head : heads) partials_.push_back(make_partials(head, params, backend));
  }

  std::unique_ptr<LayerCache> make(Index budget, std::uint32_t /*seed*/) const override {
    return std::make_unique<InfinigenCache>(heads_, partials_, params_, budget, backend_);
  }

 private:
  std::vector<HeadPrompt> heads_;
  std::vector<std::vector<Partial>> partials_;
  InfinigenParams params_;
  Backend& backend_;
};

std::shared_ptr<const PreparedLayer> prepare(std::span<const HeadPrompt> heads, const InfinigenParams& params,
                                             Backend& backend) {
  return std::make_shared<InfinigenPrepared>(heads, params, backend);
}

}  // namespace

void fields(ParamVisitor& visitor, InfinigenParams& params) {
  visitor.choice("query", params.query, {"auto", "speculated", "true"}, "what scores the tokens; auto: speculated if present");
  visitor.choice("columns", params.columns, {"q", "union"}, "columns by the size of the queries, or of queries and keys");
  visitor.real("ratio", params.ratio, {.min = 0, .max = 1}, "share of the head's channels that scores use");
  visitor.choice("fetch", params.fetch, {"fixed", "dynamic"}, "the budget, or as many as score within alpha of the best");
  visitor.real("alpha", params.alpha, {.min = 0}, "distance from the largest score, in logits, fetch=dynamic");
  visitor.real("max_share", params.max_share, {.min = 0, .max = 1}, "of the visible tokens, at most fetched, fetch=dynamic");
  visitor.choice("threshold", params.threshold, {"head", "head0"}, "whose largest score counts, fetch=dynamic");
  fields(visitor, params.group);
}

MethodInfo infinigen_method() {
  return with_params<InfinigenParams>(
      {
          .name = "infinigen",
          .aliases = {},
          .paper = "InfiniGen, arXiv 2406.19707, section 4",
          .summary = "tokens fetched from slow memory by scores of a guessed query in a few skewed channels",
          .notes =
              "Speed code: columns=q, alpha 4; accuracy code: columns=union, alpha 5, for Llama threshold=head0. Both fetch "
              "at most a fifth of the tokens and leave layers 0 and 1 dense (--dense-layers 2). ClusterKV compares at a fixed "
              "budget. Without speculated queries in the trace the true ones are used, and the row says so.",
          .complexity = {.compress = "O((n + m) d^2), m observed queries",
                         .query = "O(n c + B (d + dv)), c columns",
                         .memory = "n (d + dv) + G n c",
                         .growth = {.compress = 1, .query = 1, .memory = 1}},
          .kind = Kind::select,
          .granularity = Granularity::layer,
          .needs = {Part::observed_queries},
          .properties = {.full_budget_exact = Property::yes(),
                         .value_scaling = Property::yes(),
                         .key_shift = Property::no("columns=union looks at the size of the keys"),
                         .head_permutation = Property::yes(),
                         .nested_budgets = Property::yes(),
                         .weight_sum = WeightSum::ones},
          .heads_apart = [](const Params& p) { return p.as<InfinigenParams>().fetch == InfinigenParams::Fetch::fixed; },
      },
      prepare);
}

}  // namespace kvbench
