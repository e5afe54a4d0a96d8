// SPDX-License-Identifier: Apache-2.0
#include <kvbench/methods/retrieval/rocketkv.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>

#include <kvbench/methods/eviction/window_votes.hpp>
#include <kvbench/methods/stages/kept_cache.hpp>
#include <kvbench/methods/stages/rows.hpp>

namespace kvbench::methods {
namespace {

/// The tokens of the prompt that stay, in increasing order.
std::vector<TokenId> staying(const HeadPrompt& head, const RocketkvParams& params, const Buffer<const float>& votes,
                             Index count, Backend& backend) {
  const SelectionParams selection{.group = {.per = GroupChoice::Per::kv_head, .reduce = kernels::Reduction::sum},
                                  .pooling = kernels::Pooling::max,
                                  .kernel = params.kernel};
  const TokenScores scores = token_scores(head, votes, selection, backend);
  return backend.read(keep_best(head, scores, count, backend)->entries({})[0].ids);
}

/// The queries of a block as one row each of weights of (hi, lo) of a page, times the factor of their softmax.
Buffer<const float> page_queries(const QueryBlock& block, Index group, Index channels, float scale, Backend& backend) {
  const std::vector<float> q = backend.read(block.queries);
  const Index m = block.size(), d = block.queries.cols();
  std::vector<float> rows(static_cast<std::size_t>(2 * group * m * d), 0);
  const auto at = [&](Index g, Index i, Index c) { return q[static_cast<std::size_t>((g * m + i) * d + c)]; };
  std::vector<Index> order(static_cast<std::size_t>(d));
  for (Index i = 0; i < m; ++i) {
    std::vector<float> size(static_cast<std::size_t>(d), 0), sum = size;
    for (Index g = 0; g < group; ++g) {
      for (Index c = 0; c < d; ++c) {
        size[static_cast<std::size_t>(c)] += std::abs(at(g, i, c));
        sum[static_cast<std::size_t>(c)] += at(g, i, c);
      }
    }
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, std::greater{}, [&](Index c) { return size[static_cast<std::size_t>(c)]; });
    for (Index g = 0; g < group; ++g) {
      double all = 0, taken = 0;
      for (Index c = 0; c < d; ++c) all += std::abs(at(g, i, c));
      for (Index k = 0; k < channels; ++k) taken += std::abs(at(g, i, order[static_cast<std::size_t>(k)]));
      const double factor = taken > 0 ? scale * std::sqrt(all / taken) : 0;
      for (Index k = 0; k < channels; ++k) {
        const Index c = order[static_cast<std::size_t>(k)];
        const Index column = sum[static_cast<std::size_t>(c)] > 0 ? c : d + c;
        rows[static_cast<std::size_t>((g * m + i) * 2 * d + column)] = static_cast<float>(factor * at(g, i, c));
      }
    }
  }
  return backend.adopt(std::move(rows), group * m, 2 * d);
}

class RocketkvCache : public HeadCache {
 public:
  RocketkvCache(const HeadPrompt& head, RocketkvSizes sizes, std::vector<TokenId> stayed, Index budget,
                Backend& backend)
      : HeadCache(head, backend),
        sizes_(sizes),
        context_(head.tokens()),
        budget_(budget),
        scale_(head.scale),
        stayed_(std::move(stayed)),
        bounds_(backend, backend.allocate<float>(0, 2 * d_)),
        open_(backend.allocate<float>(sizes.page, d_)) {
    add(gathered(head.keys, stayed_, backend));
  }

  /// Up to the end of the open page, or of the next one where it is full; pages of one token are never open.
  Index takes(const TokenBlock& tokens) override {
    if (sizes_.page == 1) return tokens.size();
    return std::min(tokens.size(), filled_ == sizes_.page ? sizes_.page : sizes_.page - filled_);
  }
  void append(const TokenBlock& tokens) override {
    add(tokens.keys);
    appended_ += tokens.size();
  }

  EntryTables entries(const QueryBlock& queries) const override {
    if (held() == 0 || queries.size() == 0) return {};
    std::vector<Index> visible;
    for (const std::int32_t last : backend_.read(queries.last)) {
      visible.push_back(std::ssize(stayed_) + std::clamp<Index>(last - context_, 0, appended_));
      if (last < context_ || (sizes_.page > 1 && visible.back() <= closed() * sizes_.page))
        throw std::logic_error("rocketkv cannot answer a query before the open page");
    }
    return {table_of(choose(queries, visible))};
  }

  Footprint footprint() const override {
    const Index pages = closed() + (filled_ > 0 ? 1 : 0), index = sizes_.page > 1 ? 2 * d_ : d_;
    return {
        {.name = "keys", .rows = held(), .cols = d_, .read = Read::with_entry},
        {.name = "values", .rows = held(), .cols = dv_, .read = Read::with_entry, .content = Content::values},
        {.name = "page bounds of the channels of a query",
         .rows = pages,
         .cols = sizes_.channels,
         .content = Content::meta},
        {.name = "page bounds of other channels",
         .rows = pages,
         .cols = index - sizes_.channels,
         .read = Read::never,
         .content = Content::meta},
        chosen_tokens(std::min(budget_, held())),
    };
  }

  TokenRange retrievable() const override { return {.count = context_ + appended_}; }

 private:
  using Places = std::vector<Index>;  ///< among the tokens held

  Index closed() const { return bounds_.rows().rows(); }
  Index held() const { return std::ssize(stayed_) + appended_; }
  TokenId id_of(Index place) const {
    const Index stayed = std::ssize(stayed_);
    return place < stayed ? stayed_[static_cast<std::size_t>(place)] : static_cast<TokenId>(context_ + place - stayed);
  }

  /// A page is closed when another token follows it, and one of a single token at once.
  void add(const Buffer<const float>& keys) {
    const Index page = sizes_.page;
    for (Index done = 0; done < keys.rows();) {
      if (filled_ == page) close(open_);
      const Index left = keys.rows() - done, whole = filled_ > 0 ? 0 : (left - (page > 1 ? 1 : 0)) / page;
      if (whole > 0) close(keys.slice(done, whole * page));
      const Index next = done + whole * page, some = std::min(page - filled_, keys.rows() - next);
      copy_rows(keys.slice(next, some), open_.slice(filled_, some), backend_);
      filled_ += some;
      done = next + some;
    }
  }
  void close(const Buffer<const float>& keys) {
    const Index page = sizes_.page;
    backend_.run(kernels::PageBounds<Buffer>{.rows = keys, .page = page, .out = bounds_.add(keys.rows() / page)});
    filled_ = 0;
  }

  /// Bounds of the open page over its first `count` tokens, for each of `counts`: [counts, 2d].
  Buffer<const float> open_bounds(const std::vector<Index>& counts) const {
    std::vector<std::int32_t> rows;
    for (const Index count : counts) {
      for (Index j = 0; j < sizes_.page; ++j) rows.push_back(static_cast<std::int32_t>(std::min(j, count - 1)));
    }
    const auto bounds = backend_.allocate<float>(std::ssize(counts), 2 * d_);
    backend_.run(kernels::PageBounds<Buffer>{
        .rows = gathered(open_, std::move(rows), backend_), .page = sizes_.page, .out = bounds});
    return bounds;
  }

  /// What ranks tokens: softmax weights of the pages, averaged over the group.
  struct Ranks {
    Buffer<const float> closed;  ///< [m, closed]
    std::vector<double> open;    ///< [m], those of the open page
  };
  Ranks rank(const QueryBlock& queries, const std::vector<Index>& visible, const std::vector<Index>& open) const {
    const Index m = queries.size(), rows = group_ * m;
    const auto q = page_queries(queries, group_, sizes_.channels, scale_, backend_);
    std::vector<std::int32_t> last;
    for (const Index v : visible) last.push_back(static_cast<std::int32_t>(sizes_.page > 1 ? closed() : v));
    const ScoredRows pass = scored_rows(q, bounds_.rows(), std::move(last), 1, backend_);
    std::vector<float> sums = backend_.read(pass.log_sum_exp);
    Ranks ranks{.open = std::vector<double>(static_cast<std::size_t>(m), 0)};
    const std::vector<float> own =
        sizes_.page > 1 ? backend_.read(inner_products(q, open_bounds(open), backend_)) : std::vector<float>();
    for (Index r = 0; r < rows; ++r) {
      const auto i = static_cast<std::size_t>(r % m), row = static_cast<std::size_t>(r);
      double sum = sums[row] + std::log(static_cast<double>(sizes_.page));
      if (open[i] > 0) {
        const double score = own[row * open.size() + i];
        const double other = score + std::log(static_cast<double>(open[i]));
        sum = std::max(sum, other) + std::log1p(std::exp(-std::abs(sum - other)));
        ranks.open[i] += std::exp(score - sum) / static_cast<double>(group_);
      }
      sums[row] = static_cast<float>(sum);
    }
    const auto weights = backend_.allocate<float>(rows, closed()), mean = backend_.allocate<float>(m, closed());
    backend_.run(kernels::SoftmaxRows<Buffer>{.scores = pass.scores,
                                              .log_sum_exp = backend_.adopt(std::move(sums), rows),
                                              .out = weights,
                                              .norm = backend_.allocate<float>(rows)});
    backend_.run(kernels::ReduceRows<Buffer>{.rows = weights, .mode = kernels::Reduction::mean, .out = mean});
    ranks.closed = mean;
    return ranks;
  }

  std::vector<Places> choose(const QueryBlock& queries, const std::vector<Index>& visible) const {
    const Index m = queries.size(), page = sizes_.page;
    std::vector<Places> chosen(static_cast<std::size_t>(m));
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      if (visible[i] > budget_) continue;
      chosen[i].resize(static_cast<std::size_t>(visible[i]));
      std::iota(chosen[i].begin(), chosen[i].end(), 0);
    }
    if (*std::ranges::max_element(visible) <= budget_) return chosen;
    std::vector<Index> open;
    for (const Index count : visible) open.push_back(page > 1 ? count - closed() * page : 0);
    const Ranks ranks = rank(queries, visible, open);
    const Index most = std::min(closed(), (budget_ + page - 1) / page);
    const std::vector<std::int32_t> best = backend_.read(best_columns(ranks.closed, 0, closed(), most, backend_));
    const HostView<float> weights = backend_.on_host(ranks.closed);
    for (Index i = 0; i < m; ++i) {
      const Index count = visible[static_cast<std::size_t>(i)];
      if (count <= budget_) continue;
      std::vector<std::pair<double, Index>> pages;
      for (Index k = 0; k < most; ++k) {
        const std::int32_t p = best[static_cast<std::size_t>(i * most + k)];
        if (p >= 0) pages.emplace_back(-static_cast<double>(weights[static_cast<std::size_t>(i * closed() + p)]), p);
      }
      if (open[static_cast<std::size_t>(i)] > 0) pages.emplace_back(-ranks.open[static_cast<std::size_t>(i)], closed());
      // All fit but the last two in this order, and those of one token fit as well.
      if (page > 1) {
        const auto last_two = pages.end() - std::min<Index>(2, std::ssize(pages));
        std::ranges::nth_element(pages, last_two);
        std::sort(last_two, pages.end());
      }
      std::vector<Index> taken(static_cast<std::size_t>(closed() + 1), 0);  // tokens of each page, from its front
      Index left = budget_;
      for (const auto& [weight, p] : pages) {
        taken[static_cast<std::size_t>(p)] = std::min({page, count - p * page, left});
        left -= taken[static_cast<std::size_t>(p)];
      }
      Places& places = chosen[static_cast<std::size_t>(i)];
      places.reserve(static_cast<std::size_t>(budget_));
      for (Index p = 0; p <= closed(); ++p) {
        for (Index j = 0; j < taken[static_cast<std::size_t>(p)]; ++j) places.push_back(p * page + j);
      }
    }
    return chosen;
  }

  EntryTable table_of(const std::vector<Places>& chosen) const {
    const Index rows = std::ssize(chosen), width = std::ssize(*std::ranges::max_element(chosen, {}, &Places::size));
    std::vector<std::int32_t> ids(static_cast<std::size_t>(rows * width), -1), pages = ids;
    for (Index r = 0; r < rows; ++r) {
      auto slot = static_cast<std::size_t>(r * width);
      for (const Index place : chosen[static_cast<std::size_t>(r)]) {
        ids[slot] = id_of(place);
        pages[slot++] = static_cast<std::int32_t>(place / sizes_.page);
      }
    }
    return {.per_query = true,
            .ids = backend_.adopt(std::move(ids), rows, width),
            .cluster_ids = backend_.adopt(std::move(pages), rows, width)};
  }

  RocketkvSizes sizes_;
  Index context_, budget_;
  float scale_;
  std::vector<TokenId> stayed_;
  Index appended_ = 0;
  GrowingRows bounds_;  ///< of the closed pages, [closed, 2d]
  Buffer<float> open_;  ///< [page, d] keys of the open page
  Index filled_ = 0;    ///< rows of open_ in use
};

MakeCache prepare(const HeadPrompt& head, const RocketkvParams& params, Backend& backend) {
  const Buffer<const float> votes = window_votes(head, "rocketkv", params.window, backend);
  return [=, &backend](Index budget, std::uint32_t) {
    const RocketkvSizes sizes = rocketkv_sizes(head.tokens(), budget, head.keys.cols(), params.split);
    return std::make_unique<RocketkvCache>(head, sizes, staying(head, params, votes, sizes.stay, backend), budget,
                                           backend);
  };
}

}  // namespace

RocketkvSizes rocketkv_sizes(Index tokens, Index budget, Index d, double split) {
  const double n = static_cast<double>(tokens), read = 2 * static_cast<double>(budget);
  const double ratio = std::max(1.0, n / read);
  const double share = split >= 0 ? split : std::min(0.2 + std::log2(ratio) * 0.06, 0.8);
  RocketkvSizes sizes{.stay = static_cast<Index>(n / std::pow(ratio, share))};
  sizes.stay = std::clamp(sizes.stay, std::min(budget, tokens), tokens);
  const double left = std::max(1.0, static_cast<double>(sizes.stay) / read);
  sizes.page = static_cast<Index>(std::min(std::floor(left), std::ceil(std::sqrt(left))));
  const double channels = std::round(static_cast<double>(d * sizes.page) / left);
  sizes.channels = std::clamp<Index>(static_cast<Index>(channels), 1, d);
  return sizes;
}

void fields(ParamVisitor& visitor, RocketkvParams& params) {
  visitor.integer("window", params.window, {.min = 1}, "last queries that vote, and last tokens that stay");
  visitor.integer("kernel", params.kernel, {.min = 1}, "pooling width of the votes in tokens, odd");
  visitor.real("split", params.split, {.min = -1, .max = 1},
               "exponent of the compression that eviction takes; -1: the released formula");
}

void check(const RocketkvParams& params) { check_selection("rocketkv", {.kernel = params.kernel}); }

MethodInfo rocketkv_method() {
  return with_params<RocketkvParams>(
      {
          .name = "rocketkv",
          .paper = "RocketKV, arXiv 2502.14051, sections 3.2 and 3.3",
          .summary = "eviction by window votes, then pages selected per query by bounds from its largest channels",
          .notes = "B tokens answer a query; the released token_budget is 2 B, half of which is the traffic of the "
                   "index. Page size and channels follow gpt-fast/rocket.py; the accuracy code rounds them otherwise. "
                   "Both keep room for generated tokens within the capacity; here it is for the prompt.",
          .complexity = {.compress = {"O(G W n d + n log n)", 1},
                         .query = {"O(C r / p + B (d + dv)), C tokens stay", 0.5},
                         .memory = {"C (d + dv) + 2 C d / p", 0.5}},
          .kind = Kind::retrieval,
          .needs = {Part::observed_queries},
          .check_data = [](const ContextData& data,
                           const Params& p) { check_window(data, "rocketkv", p.as<RocketkvParams>().window); },
          .properties = {.nested_budgets = Property::no("pages and channels depend on the budget")},
      },
      prepare);
}

}  // namespace kvbench::methods
