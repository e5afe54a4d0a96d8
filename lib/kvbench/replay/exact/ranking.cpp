// SPDX-License-Identifier: Apache-2.0
#include <kvbench/replay/exact/ranking.hpp>

#include <algorithm>
#include <bit>
#include <stdexcept>

#include <kvbench/replay/exact/radix_sort.hpp>

namespace kvbench::replay {
namespace {

/// A key that increases as the logit decreases; -0 equals +0.
std::uint32_t falling(float logit) {
  const auto bits = std::bit_cast<std::uint32_t>(logit + 0.0f);
  return (bits & 0x80000000u) != 0 ? bits : ~bits & 0x7fffffffu;
}

}  // namespace

BestTokens Ranking::best(Backend& backend, const ExactRows& rows, Index k, Index first, Index last, Index row) {
  // All tokens outside the range may be better than those inside.
  const Index n = rows.scores.cols(), needed = std::min(n, k + n - (std::min(last, n) - std::max<Index>(first, 0)));
  if (needed > selected_) select(backend, rows, std::min(n, std::max(needed, selected_ + selected_ / 2)));
  std::vector<std::vector<Mark>>& of_range = marks_[{first, last}];
  if (of_range.empty()) of_range.resize(static_cast<std::size_t>(rows.scores.rows()));
  std::vector<Mark>& marks = of_range[static_cast<std::size_t>(row)];
  const std::vector<Ranked>& ranked = sorted(rows, row);
  const Index marked = std::min((k - 1) / stride, static_cast<Index>(marks.size()));
  Mark at = marked > 0 ? marks[static_cast<std::size_t>(marked - 1)] : Mark{};
  for (Index met = marked * stride; at.position < ranked.size();) {
    const Ranked& token = ranked[at.position++];
    if (token.id < first || token.id >= last) continue;
    at.mass += static_cast<double>(token.share);
    if (++met == k) return {token.logit, token.id, at.mass};
    if (met == (static_cast<Index>(marks.size()) + 1) * stride) marks.push_back(at);
  }
  throw std::logic_error("fewer than k visible tokens in the range");
}

void Ranking::select(Backend& backend, const ExactRows& exact, Index count) {
  const Index rows = exact.scores.rows();
  std::vector<std::int32_t> first, last;
  for (Index r = 0; r < rows; ++r) {
    first.push_back(exact.first[static_cast<std::size_t>(r) % exact.first.size()]);
    last.push_back(exact.last[static_cast<std::size_t>(r) % exact.last.size()]);
  }
  const auto ids = backend.allocate<std::int32_t>(rows, count);
  backend.run(kernels::TopK<Buffer>{.scores = exact.scores,
                                    .first = backend.adopt(std::move(first), rows),
                                    .last = backend.adopt(std::move(last), rows),
                                    .ids = ids});
  chosen_ = backend.on_host(ids);
  selected_ = count;
  by_rank_.assign(static_cast<std::size_t>(rows), {});
}

const std::vector<Ranking::Ranked>& Ranking::sorted(const ExactRows& rows, Index row) {
  std::vector<Ranked>& ranked = by_rank_[static_cast<std::size_t>(row)];
  if (!ranked.empty()) return ranked;
  const float* logits = rows.logits.data() + row * rows.scores.cols();
  const float* shares = rows.shares.data() + row * rows.scores.cols();
  const std::int32_t* ids = chosen_.data() + row * selected_;
  const Index count = std::find(ids, ids + selected_, -1) - ids;
  ranked.reserve(static_cast<std::size_t>(count));
  for (const std::int32_t id : std::span(ids, static_cast<std::size_t>(count))) {
    ranked.push_back({id, logits[id], shares[id]});
  }
  // The tokens are in increasing order, which the stable sort keeps among equal logits.
  radix_sort(ranked, [](const Ranked& token) { return falling(token.logit); });
  return ranked;
}

}  // namespace kvbench::replay
