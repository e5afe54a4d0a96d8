// SPDX-License-Identifier: Apache-2.0
#include <kvbench/replay/ranking.hpp>

#include <algorithm>
#include <bit>
#include <stdexcept>

namespace kvbench {
namespace {

/// Increases where the logit falls; -0 equals +0.
std::uint32_t falling(float logit) {
  const auto bits = std::bit_cast<std::uint32_t>(logit + 0.0f);
  return (bits & 0x80000000u) != 0 ? bits : ~bits & 0x7fffffffu;
}

}  // namespace

BestTokens Ranking::best(Backend& backend, const ExactRows& rows, Index k, Index first, Index last, Index row) {
  Known& known = known_[{k, first, last}];
  const auto at = static_cast<std::size_t>(row);
  if (known.rows.empty()) {
    known.rows.resize(static_cast<std::size_t>(rows.scores.rows()));
    known.present.resize(known.rows.size());
  }
  if (known.present[at] == 0) {
    // All tokens outside the range may be better than those inside.
    const Index n = rows.scores.cols(), needed = std::min(n, k + n - (std::min(last, n) - std::max<Index>(first, 0)));
    if (needed > selected_) select(backend, rows, std::min(n, std::max(needed, selected_ + selected_ / 2)));
    known.rows[at] = walk(rows, k, first, last, row);
    known.present[at] = 1;
  }
  return known.rows[at];
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
  chosen_ = backend.read(ids);
  selected_ = count;
  by_rank_.assign(static_cast<std::size_t>(rows), {});
}

const std::vector<Ranking::Ranked>& Ranking::sorted(const ExactRows& rows, Index row) {
  std::vector<Ranked>& ranked = by_rank_[static_cast<std::size_t>(row)];
  if (!ranked.empty()) return ranked;
  // One number holds logit and token, so that sorting compares numbers and nothing else.
  std::vector<std::uint64_t> keys;
  const float* logits = rows.logits.data() + row * rows.scores.cols();
  const float* shares = rows.shares.data() + row * rows.scores.cols();
  for (Index i = row * selected_; i < (row + 1) * selected_ && chosen_[static_cast<std::size_t>(i)] >= 0; ++i) {
    const auto id = static_cast<std::uint32_t>(chosen_[static_cast<std::size_t>(i)]);
    keys.push_back(std::uint64_t{falling(logits[id])} << 32 | id);
  }
  std::ranges::sort(keys);
  ranked.reserve(keys.size());
  for (const std::uint64_t key : keys) {
    const auto id = static_cast<std::int32_t>(key & 0xffffffffu);
    ranked.push_back({id, logits[id], shares[id]});
  }
  return ranked;
}

BestTokens Ranking::walk(const ExactRows& rows, Index k, Index first, Index last, Index row) {
  BestTokens best;
  for (const Ranked& token : sorted(rows, row)) {
    if (token.id < first || token.id >= last) continue;
    best.mass += static_cast<double>(token.share);
    if (--k > 0) continue;
    best.logit = token.logit;
    best.last = token.id;
    return best;
  }
  throw std::logic_error("fewer tokens in the range than were kept of it");
}

}  // namespace kvbench
