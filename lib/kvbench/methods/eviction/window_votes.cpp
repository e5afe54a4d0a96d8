// SPDX-License-Identifier: Apache-2.0
#include <kvbench/methods/eviction/window_votes.hpp>

#include <algorithm>
#include <cmath>

#include <kvbench/methods/stages/rows.hpp>

namespace kvbench::methods {
namespace {

/// The voting queries and the context's tokens before them.
struct Window {
  Index past = 0;                       ///< tokens before the window
  std::vector<std::int32_t> positions;  ///< [W] of the queries
  Buffer<const float> queries;          ///< [G*W, d]
  Buffer<const float> fixed;            ///< [G*W, 1] HeadPrompt::fixed_log_sum_exp of these queries; may be absent
};

/// The last W positions, and those of them whose queries the trace holds.
struct LastPositions {
  Index begin = 0, end = 0;
  std::vector<std::int32_t> observed;

  LastPositions(const ContextData& data, Index size) {
    end = data.observed.empty() ? data.tokens : std::max<Index>(data.tokens, data.observed.back() + 1);
    begin = std::max<Index>(0, end - size);
    observed.assign(std::ranges::lower_bound(data.observed, begin), data.observed.end());
  }
};

/// The queries of the last W positions, all of which the trace holds.
Window find_window(const HeadPrompt& head, Index size, Backend& backend) {
  const auto& positions = head.observed_positions;
  LastPositions last(head.data(), size);
  Window window{.past = std::min(last.begin, head.tokens()), .positions = std::move(last.observed)};
  const Index found = std::ssize(window.positions);
  std::vector<std::int32_t> rows;
  for (Index g = 0; g < head.group; ++g) {
    const std::vector<TokenId> of_head = token_range((g + 1) * std::ssize(positions) - found, found);
    rows.insert(rows.end(), of_head.begin(), of_head.end());
  }
  if (head.fixed_log_sum_exp.present()) window.fixed = gathered(head.fixed_log_sum_exp, rows, backend);
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

/// ln(exp(a) + exp(b)) of each row; a is finite, b may be -inf.
Buffer<float> add_exp(const Buffer<float>& a, const Buffer<const float>& b, Backend& backend) {
  std::vector<float> sum = backend.read(a);
  const std::vector<float> other = backend.read(b);
  for (std::size_t i = 0; i < sum.size(); ++i) {
    const double high = std::max(sum[i], other[i]), low = std::min(sum[i], other[i]);
    sum[i] = static_cast<float>(high + std::log1p(std::exp(low - high)));
  }
  return backend.adopt(std::move(sum), a.rows());
}

/// The attention [G, count] that the first `count` tokens of the context get from the window's queries, summed.
Buffer<const float> votes_for(const HeadPrompt& head, const Window& window, Index count, Backend& backend) {
  const auto sums = backend.allocate<float>(head.group, count);
  if (count == 0) return sums;
  const Index rest = head.tokens() - count;
  Logits logits = score(head, window, 0, count, backend);
  if (rest > 0) {
    logits.log_sum_exp = add_exp(logits.log_sum_exp, score(head, window, count, rest, backend).log_sum_exp, backend);
  }
  if (window.fixed.present()) logits.log_sum_exp = add_exp(logits.log_sum_exp, window.fixed, backend);
  backend.run(kernels::ColumnSums<Buffer>{.scores = logits.scores, .log_sum_exp = logits.log_sum_exp, .out = sums});
  return sums;
}

}  // namespace

void fields(ParamVisitor& visitor, WindowVoteParams& params) {
  visitor.integer("window", params.window, {.min = 1},
                  "W: last queries that vote, and last tokens that are always kept");
  visitor.integer("kernel", params.selection.kernel, {.min = 1}, "pooling width in tokens, odd");
  visitor.choice("pooling", params.selection.pooling, {"none", "max", "mean"},
                 "pooling of the votes along the context");
  fields(visitor, params.selection.group);
  visitor.choice("order", params.selection.order, {"reduce_first", "pool_first"},
                 "order of reduction and pooling, per=kv_head only");
}

void check_window(const ContextData& data, std::string_view method, Index size) {
  const LastPositions last(data, size);
  const Index found = std::ssize(last.observed), wanted = last.end - last.begin;
  if (found == wanted) return;
  throw Unavailable(fmt::format(
      "{0} needs the queries at the positions {1} .. {2}, the end of the context, and there are {3} of these {4}; {5}"
      "replay a trace that has them all (--queries)",
      method, last.begin, last.end - 1, found, wanted, size > 1 ? fmt::format("lower {}.window, or ", method) : ""));
}

Buffer<const float> window_votes(const HeadPrompt& head, std::string_view method, Index size, Backend& backend) {
  check_window(head.data(), method, size);
  const Window window = find_window(head, size, backend);
  const auto queries = static_cast<double>(std::max<std::size_t>(1, window.positions.size()));
  return as_scores(on_host(votes_for(head, window, window.past, backend), backend) / queries, backend, head.group);
}

TokenNumbers last_query_weights(std::span<const HeadPrompt> heads, std::string_view method, LastToken last,
                                Backend& backend) {
  TokenNumbers sum;
  for (const HeadPrompt& head : heads) {
    check_window(head.data(), method, 1);
    const Window window = find_window(head, 1, backend);
    const Index count = last == LastToken::competes ? head.tokens() : window.past;
    const Buffer<const float> weights = votes_for(head, window, count, backend);
    const TokenNumbers mean = on_host(group_scores(weights, 1, {.per = GroupChoice::Per::kv_head}, backend), backend);
    sum = sum.size() == 0 ? mean : TokenNumbers(sum + mean);
  }
  return sum / static_cast<double>(heads.size());
}

}  // namespace kvbench::methods
