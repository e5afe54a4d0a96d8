// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include <kvbench/methods/quantisation/group_codec.hpp>
#include <kvbench/methods/stages/draws.hpp>
#include <kvbench/methods/stages/rows.hpp>

namespace kvbench::methods {

/// Rows that an orthogonal matrix turns before they are rounded, and back.
class TurnedCodec : public Codec {
 public:
  /// `matrix` makes the [d, d] matrix when rows are first encoded: the search of a level asks for bytes only.
  TurnedCodec(std::function<std::vector<double>()> matrix, const GroupCodecSettings& rounding)
      : make_(std::move(matrix)), rounded_(rounding) {}

  Buffer<const float> decoded(const Buffer<const float>& rows, Backend& backend) const override {
    const Index d = rows.cols();
    if (!turn_) turn_ = matrix_pair(make_(), d, d, 1, backend);
    return projected(rounded_.decoded(projected(rows, turn_->matrix, backend), backend), turn_->transpose, backend);
  }
  bool by_row() const override { return rounded_.by_row(); }
  Footprint footprint(Index rows, Index cols) const override { return rounded_.footprint(rows, cols); }

 private:
  std::function<std::vector<double>()> make_;
  GroupCodec rounded_;
  mutable std::optional<MatrixPair> turn_;
};

}  // namespace kvbench::methods
