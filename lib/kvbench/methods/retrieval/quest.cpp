// SPDX-License-Identifier: Apache-2.0
#include <kvbench/methods/retrieval/quest.hpp>

#include <algorithm>
#include <stdexcept>

#include <kvbench/methods/stages/per_block.hpp>
#include <kvbench/methods/stages/rows.hpp>

namespace kvbench::methods {
namespace {

/// Number of tokens in the pages before the page of the last of `tokens` tokens.
Index closed_tokens(Index tokens, Index page) { return tokens == 0 ? 0 : (tokens - 1) / page * page; }

/// Scores of the pages, of all budgets.
using PageScores = PerBlock<Buffer<const float>>;

class QuestCache : public HeadCache {
 public:
  /// `bounds` are those of the context's closed pages.
  QuestCache(const HeadPrompt& head, Buffer<const float> bounds, std::shared_ptr<PageScores> scores,
             const QuestParams& params, Index budget, Backend& backend)
      : HeadCache(head, backend),
        params_(params),
        budget_(budget),
        bounds_(backend, std::move(bounds)),
        open_(backend.allocate<float>(params.page, head.keys.cols())),
        scores_(std::move(scores)) {
    const Index closed = closed_tokens(head.tokens(), params.page);
    fill(head.keys.slice(closed, head.tokens() - closed));
  }

  /// Up to the end of the open page, or of the next one where it is full.
  Index takes(const TokenBlock& tokens) override {
    return std::min(tokens.size(), filled_ == params_.page ? params_.page : params_.page - filled_);
  }
  void append(const TokenBlock& tokens) override {
    if (filled_ == params_.page) close_page();
    fill(tokens.keys);
  }

  EntryTables entries(const QueryBlock& queries) const override {
    if (tokens() == 0 || queries.size() == 0) return {};
    return {table_of(choose(queries, visible_ends(queries)))};
  }

  Footprint footprint() const override {
    const Index pages = closed() + (filled_ > 0), d = open_.cols();
    const Index chosen = (params_.group.per_head() ? group_ : 1) * std::min(pages_of(budget_), pages);
    return {
        {.name = "keys", .rows = tokens(), .cols = d, .read = Read::with_entry},
        {.name = "values", .rows = tokens(), .cols = dv_, .read = Read::with_entry, .content = Content::values},
        {.name = "page bounds", .rows = pages, .cols = 2 * d, .content = Content::meta},
        {.name = "chosen pages", .element = Element::i32, .rows = chosen, .cols = 1, .content = Content::meta},
    };
  }

  TokenRange retrievable() const override { return {.count = tokens()}; }

 private:
  using Pages = std::vector<std::int32_t>;

  Index pages_of(Index budget) const { return std::max(params_.min_pages, budget / params_.page); }
  Index closed() const { return bounds_.rows().rows(); }
  Index tokens() const { return closed() * params_.page + filled_; }

  void fill(const Buffer<const float>& keys) {
    copy_rows(keys, open_.slice(filled_, keys.rows()), backend_);
    filled_ += keys.rows();
  }

  void close_page() {
    backend_.run(kernels::PageBounds<Buffer>{.rows = open_, .page = params_.page, .out = bounds_.add(1)});
    filled_ = 0;
  }

  /// Number of visible tokens of each query. All of them end in the open page, as takes() never goes beyond it.
  std::vector<Index> visible_ends(const QueryBlock& queries) const {
    std::vector<Index> ends;
    for (const std::int32_t last : backend_.read(queries.last)) {
      ends.push_back(std::min<Index>(last, tokens()));
      if (ends.back() <= closed() * params_.page) {
        throw std::logic_error("quest cannot answer a query before the open page");
      }
    }
    return ends;
  }

  /// Bounds of the open page over the tokens before each of `ends`: [ends, 2d].
  Buffer<const float> open_bounds(const std::vector<Index>& ends) const {
    std::vector<std::int32_t> rows;  // tokens after the end are replaced by the last visible one
    for (const Index end : ends) {
      const Index seen = end - closed() * params_.page;
      for (Index j = 0; j < params_.page; ++j) rows.push_back(static_cast<std::int32_t>(std::min(j, seen - 1)));
    }
    const auto keys = gathered(open_, std::move(rows), backend_);
    const auto bounds = backend_.allocate<float>(std::ssize(ends), 2 * open_.cols());
    backend_.run(kernels::PageBounds<Buffer>{.rows = keys, .page = params_.page, .out = bounds});
    return bounds;
  }

  /// Bounds on the logits, without their scale: [G*m, pages], the open page last.
  Buffer<const float> page_scores(const QueryBlock& queries, const std::vector<Index>& ends) const {
    const Index rows = queries.queries.rows(), m = queries.size(), pages = closed();
    const auto split = backend_.allocate<float>(rows, 2 * open_.cols());
    backend_.run(kernels::SplitSigns<Buffer>{.rows = queries.queries, .out = split});
    std::vector<Index> distinct = ends;
    distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
    const auto bounds = backend_.allocate<float>(pages + std::ssize(distinct), 2 * open_.cols());
    copy_rows(bounds_.rows(), bounds.slice(0, pages), backend_);
    copy_rows(open_bounds(distinct), bounds.slice(pages, std::ssize(distinct)), backend_);
    const auto all = inner_products(split, bounds, backend_);
    if (distinct.size() == 1) return all;
    const std::vector<float> host = backend_.read(all);
    std::vector<float> scores;
    scores.reserve(static_cast<std::size_t>(rows * (pages + 1)));
    for (Index r = 0; r < rows; ++r) {
      const auto row = host.begin() + r * (pages + std::ssize(distinct));
      const auto own = std::ranges::find(distinct, ends[static_cast<std::size_t>(r % m)]) - distinct.begin();
      scores.insert(scores.end(), row, row + pages);
      scores.push_back(row[pages + own]);
    }
    return backend_.adopt(std::move(scores), rows, pages + 1);
  }

  /// The pages that answer each row, g*m + i, or i with per=kv_head. A query with no more visible tokens than the
  /// budget gets all pages.
  std::vector<Pages> choose(const QueryBlock& queries, const std::vector<Index>& ends) const {
    const Index m = queries.size(), all = closed() + 1, rows = params_.group.per_head() ? group_ * m : m;
    std::vector<Pages> chosen(static_cast<std::size_t>(rows), token_range(0, all));
    if (pages_of(budget_) >= all) return chosen;
    const Index competing = params_.last_page ? all - 1 : all, count = pages_of(budget_) - (params_.last_page ? 1 : 0);
    const auto scores = scores_->of(
        queries, tokens(), [&] { return group_scores(page_scores(queries, ends), m, params_.group, backend_); });
    const std::vector<std::int32_t> best = backend_.read(best_columns(scores, 0, competing, count, backend_));
    for (Index r = 0; r < rows; ++r) {
      if (ends[static_cast<std::size_t>(r % m)] <= budget_) continue;
      Pages& pages = chosen[static_cast<std::size_t>(r)];
      pages.assign(best.begin() + r * count, best.begin() + (r + 1) * count);
      if (params_.last_page) pages.push_back(static_cast<std::int32_t>(all - 1));
    }
    return chosen;
  }

  EntryTable table_of(const std::vector<Pages>& chosen) const {
    const Index page = params_.page, rows = std::ssize(chosen);
    const Index width = page * std::ssize(*std::ranges::max_element(chosen, {}, &Pages::size));
    std::vector<std::int32_t> ids(static_cast<std::size_t>(rows * width), -1), page_ids = ids;
    for (Index r = 0; r < rows; ++r) {
      auto slot = static_cast<std::size_t>(r * width);
      for (const std::int32_t p : chosen[static_cast<std::size_t>(r)]) {
        for (Index j = p * page; j < std::min((p + 1) * page, tokens()); ++j, ++slot) {
          ids[slot] = static_cast<std::int32_t>(j);
          page_ids[slot] = p;
        }
      }
    }
    return {.per_head = params_.group.per_head(),
            .per_query = true,
            .ids = backend_.adopt(std::move(ids), rows, width),
            .cluster_ids = backend_.adopt(std::move(page_ids), rows, width)};
  }

  QuestParams params_;
  Index budget_;
  GrowingRows bounds_;  ///< of the closed pages, [closed, 2d]
  Buffer<float> open_;  ///< [page, d] keys of the open page, which always contains the newest token
  Index filled_ = 0;    ///< rows of open_ in use
  std::shared_ptr<PageScores> scores_;
};

MakeCache prepare(const HeadPrompt& head, const QuestParams& params, Backend& backend) {
  const Index closed = closed_tokens(head.tokens(), params.page);
  const auto bounds = backend.allocate<float>(closed / params.page, 2 * head.keys.cols());
  backend.run(kernels::PageBounds<Buffer>{.rows = head.keys.slice(0, closed), .page = params.page, .out = bounds});
  const auto scores = std::make_shared<PageScores>();
  return [head, bounds, scores, params, &backend](Index budget, std::uint32_t) -> std::unique_ptr<CompressedCache> {
    if (budget < params.min_pages * params.page) {
      throw Infeasible(
          fmt::format("quest reads at least {} pages of {} tokens, more than the budget of {} tokens; raise the "
                      "budget, or lower quest.min_pages or quest.page",
                      params.min_pages, params.page, budget));
    }
    return std::make_unique<QuestCache>(head, bounds, scores, params, budget, backend);
  };
}

}  // namespace

void fields(ParamVisitor& visitor, QuestParams& params) {
  visitor.integer("page", params.page, {.min = 1, .max = 65536}, "tokens per page");
  visitor.integer("min_pages", params.min_pages, {.min = 1, .max = 65536}, "minimum number of pages per query");
  visitor.flag("last_page", params.last_page, "always take the newest page, as one of them");
  fields(visitor, params.group);
}

MethodInfo quest_method() {
  return with_params<QuestParams>(
      {
          .name = "quest",
          .paper = "Quest, arXiv 2406.10774, section 3",
          .summary =
              "pages of tokens, selected per query by a bound on its logits from channel-wise extremes of the keys",
          .notes = "Evaluation code: the newest page competes (last_page=false); CUDA path: it is always taken "
                   "(last_page=true). The whole cache stays on the fast tier: compare the bytes read, not the bytes "
                   "stored. Both keep the first two layers dense (--dense-layers 2).",
          .complexity = {.compress = {"O(n d)", 1},
                         .query = {"O(2 d n / page + B (d + dv))", 1},
                         .memory = {"n (d + dv) + 2 d n / page", 1}},
          .kind = Kind::retrieval,
          .granularity = Granularity::query_head,
          .streaming = true,
      },
      prepare);
}

}  // namespace kvbench::methods
