// SPDX-License-Identifier: Apache-2.0
// The tokens of the query rows of a block in falling order of their exact logits, from which the best k of any range
// are computed for every method and budget without another scan of all scores.
#pragma once

#include <map>
#include <span>
#include <utility>
#include <vector>

#include <kvbench/kernels/backend.hpp>

namespace kvbench::replay {

/// The k best tokens of a row and range: those with a higher logit than the last of them, or an equal one and no larger
/// number.
struct BestTokens {
  float logit = 0;        ///< of the last of them
  std::int32_t last = 0;  ///< its number
  double mass = 0;        ///< sum of their shares of the softmax
  bool hold(float other, std::int32_t id) const { return (other >= logit) & ((other > logit) | (id <= last)); }
};

/// R exact query rows, row g*m + i, over n tokens.
struct ExactRows {
  const Buffer<const float>& scores;      ///< [R, n] logits
  std::span<const float> logits, shares;  ///< [R, n] the same on the host, and the softmax rows
  std::span<const std::int32_t> first;    ///< [m] query i sees tokens first[i] <= j < last[i]
  std::span<const std::int32_t> last;
};

/// Every call must pass the same rows. Of equal logits the lower token is the better one.
class Ranking {
 public:
  /// The k best visible tokens of a row within [first, last), which must contain at least k >= 1.
  BestTokens best(Backend& backend, const ExactRows& rows, Index k, Index first, Index last, Index row);

 private:
  struct Ranked {
    std::int32_t id;
    float logit, share;
  };
  /// The state of a walk over the ranking of a row, stored after every `stride` tokens of the range.
  struct Mark {
    std::size_t position = 0;  ///< of the next token
    double mass = 0;           ///< of the tokens of the range so far
  };
  using Range = std::pair<Index, Index>;
  static constexpr Index stride = 16;

  void select(Backend& backend, const ExactRows& rows, Index count);
  const std::vector<Ranked>& sorted(const ExactRows& rows, Index row);

  Index selected_ = 0;                                     ///< tokens of each row in chosen_
  HostView<std::int32_t> chosen_;                          ///< [R, selected_] by number, then -1
  std::vector<std::vector<Ranked>> by_rank_;               ///< by row: chosen_, the best first; empty: not computed yet
  std::map<Range, std::vector<std::vector<Mark>>> marks_;  ///< by row; [c]: after (c + 1) * stride tokens of the range
};

}  // namespace kvbench::replay
