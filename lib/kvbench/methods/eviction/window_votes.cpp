// SPDX-License-Identifier: Apache-2.0
#include <kvbench/methods/eviction/window_votes.hpp>

#include <algorithm>
#include <cmath>

#include <kvbench/methods/stages/stages.hpp>

namespace kvbench {
namespace {

/// The voting queries and the context's tokens before them.
struct Window {
  Index past = 0;                       ///< tokens before the window
  std::vector<std::int32_t> positions;  ///< [W] of the queries
  Buffer<const float> queries;          ///< [G*W, d]
};

/// Finds the queries of the last W positions. Throws Unavailable where the trace lacks one.
Window find_window(const HeadPrompt& head, std::string_view method, Index size, Backend& backend) {
  const Index n = head.tokens();
  const auto& positions = head.observed_positions;
  const Index end = positions.empty() ? n : std::max<Index>(n, positions.back() + 1);
  const Index begin = std::max<Index>(0, end - size);
  const auto from = std::ranges::lower_bound(positions, begin);
  Window window{.past = std::min(begin, n), .positions = {from, positions.end()}};
  const Index found = static_cast<Index>(window.positions.size());
  if (!head.observed.present() || found != end - begin) {
    throw Unavailable(fmt::format(
        "{0} needs the queries at the positions {1} .. {2}, the end of the context, and the trace has {3} of these {4}; "
        "dump them (kvdump --queries) or lower {0}.window",
        method, begin, end - 1, found, end - begin));
  }
  std::vector<std::int32_t> rows;
  for (Index g = 0; g < head.group; ++g) {
    const std::vector<TokenId> of_head = token_range((g + 1) * std::ssize(positions) - found, found);
    rows.insert(rows.end(), of_head.begin(), of_head.end());
  }
  window.queries = gathered(head.observed, std::move(rows), backend);
  return window;
}

struct Logits {
  Buffer<float> scores;       ///< [G*W, count]
  Buffer<float> log_sum_exp;  ///< [G*W, 1]
};

/// Logits of the window's queries for the context's tokens [first, first + count).
Logits score(const HeadPrompt& head, const Window& window, Index first, Index count, Backend& backend) {
  const Index rows = window.queries.rows(), queries = std::ssize(window.positions);
  std::vector<std::int32_t> last;
  for (const std::int32_t position : window.positions) {
    last.push_back(static_cast<std::int32_t>(std::clamp<Index>(position + 1 - first, 0, count)));
  }
  Logits logits{backend.allocate<float>(rows, count), backend.allocate<float>(rows)};
  backend.run(kernels::ExactAttention<Buffer>{
      .queries = window.queries,
      .keys = head.keys.slice(first, count),
      .values = head.values.slice(first, count),
      .first = backend.adopt(std::vector<std::int32_t>(last.size(), 0), queries),
      .last = backend.adopt(std::move(last), queries),
      .scale = head.scale,
      .out = backend.allocate<float>(rows, head.values.cols()),
      .max = backend.allocate<float>(rows),
      .log_sum_exp = logits.log_sum_exp,
      .scores = logits.scores,
  });
  return logits;
}

/// ln(exp(a) + exp(b)) of each row.
Buffer<float> add_exp(const Buffer<float>& a, const Buffer<float>& b, Backend& backend) {
  std::vector<float> sum = backend.read(a);
  const std::vector<float> other = backend.read(b);
  for (std::size_t i = 0; i < sum.size(); ++i) {
    const double high = std::max(sum[i], other[i]), low = std::min(sum[i], other[i]);
    sum[i] = static_cast<float>(high + std::log1p(std::exp(low - high)));
  }
  return backend.adopt(std::move(sum), a.rows());
}

/// Attention that each token before the window receives from the window's queries: [G, past]. The window's own tokens take
/// their part of each softmax but stand in no column, so that pooling cannot see them.
Buffer<float> votes(const HeadPrompt& head, const Window& window, Backend& backend) {
  const Index inside = head.tokens() - window.past;
  Logits past = score(head, window, 0, window.past, backend);
  if (inside > 0) {
    past.log_sum_exp = add_exp(past.log_sum_exp, score(head, window, window.past, inside, backend).log_sum_exp, backend);
  }
  const auto sums = backend.allocate<float>(head.group, window.past);
  backend.run(kernels::ColumnSums<Buffer>{.scores = past.scores, .log_sum_exp = past.log_sum_exp, .out = sums});
  return sums;
}

Buffer<const float> pool(const Buffer<const float>& rows, const WindowVoteParams& params, Backend& backend) {
  if (params.pooling == kernels::Pooling::none) return rows;
  const auto out = backend.allocate<float>(rows.rows(), rows.cols());
  backend.run(kernels::PoolRows<Buffer>{.rows = rows, .mode = params.pooling, .kernel = params.kernel, .out = out});
  return out;
}

Buffer<const float> pooled_votes(const HeadPrompt& head, const Window& window, const WindowVoteParams& params,
                                 Backend& backend) {
  const Buffer<const float> sums = votes(head, window, backend);
  if (params.order == WindowVoteParams::Order::pool_first) {
    return group_scores(pool(sums, params, backend), 1, params.group, backend);
  }
  return pool(group_scores(sums, 1, params.group, backend), params, backend);
}

class WindowVotes : public Prepared {
 public:
  WindowVotes(const HeadPrompt& head, std::string_view method, const WindowVoteParams& params, Backend& backend)
      : head_(head), backend_(backend) {
    const Window window = find_window(head, method, params.window, backend);
    past_ = window.past;
    if (past_ > 0) scores_ = pooled_votes(head, window, params, backend);
  }

  std::unique_ptr<CompressedCache> make(Index budget, std::uint32_t /*seed*/) const override {
    const Index n = head_.tokens(), kept = std::min(budget, n), inside = std::min(kept, n - past_);
    KeptTokens tokens{.ids = token_range(n - kept, kept), .fixed = {.recent = inside}};
    if (inside < kept && kept < n) {
      tokens.per_head = scores_.rows() > 1;
      tokens.rows = scores_.rows();
      tokens.ids = winners(kept - inside);
    }
    return std::make_unique<KeptCache>(backend_, head_, std::move(tokens));
  }

 private:
  /// The best `count` tokens of each row of scores, each row followed by the window's tokens.
  std::vector<TokenId> winners(Index count) const {
    const Index rows = scores_.rows();
    const auto top = backend_.allocate<std::int32_t>(rows, count);
    const auto bound = static_cast<std::int32_t>(past_);
    backend_.run(kernels::TopK<Buffer>{
        .scores = scores_,
        .first = backend_.adopt(std::vector<std::int32_t>(static_cast<std::size_t>(rows), 0), rows),
        .last = backend_.adopt(std::vector<std::int32_t>(static_cast<std::size_t>(rows), bound), rows),
        .ids = top,
    });
    const std::vector<TokenId> best = backend_.read(top), inside = token_range(past_, head_.tokens() - past_);
    std::vector<TokenId> ids;
    for (Index r = 0; r < rows; ++r) {
      ids.insert(ids.end(), best.begin() + r * count, best.begin() + (r + 1) * count);
      ids.insert(ids.end(), inside.begin(), inside.end());
    }
    return ids;
  }

  HeadPrompt head_;
  Backend& backend_;
  Index past_ = 0;              ///< tokens before the window
  Buffer<const float> scores_;  ///< [G or 1, past], absent where the window is the whole context
};

}  // namespace

void fields(ParamVisitor& visitor, WindowVoteParams& params) {
  visitor.integer("window", params.window, {.min = 1}, "W: last queries that vote, and last tokens that are always kept");
  visitor.integer("kernel", params.kernel, {.min = 1}, "pooling width in tokens, odd");
  visitor.choice("pooling", params.pooling, {"none", "max", "mean"}, "pooling of the votes along the context");
  fields(visitor, params.group);
  visitor.choice("order", params.order, {"reduce_first", "pool_first"}, "reduction and pooling, per=kv_head only");
}

void check_votes(std::string_view method, const WindowVoteParams& params) {
  if (params.kernel % 2 == 0) throw Error("parameter '{}.kernel' is {}; it must be odd", method, params.kernel);
}

std::shared_ptr<const Prepared> window_votes(const HeadPrompt& head, std::string_view method, const WindowVoteParams& params,
                                             Backend& backend) {
  return std::make_shared<WindowVotes>(head, method, params, backend);
}

}  // namespace kvbench
