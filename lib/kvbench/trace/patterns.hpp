// SPDX-License-Identifier: Apache-2.0
// Random arrays of a synthetic trace: one kv head with its query heads.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <kvbench/trace/synth.hpp>

namespace kvbench::trace {

/// Identifies the random numbers, which are independent for every prompt, layer and head.
struct Place {
  std::uint32_t prompt = 0, layer = 0, kv_head = 0;
};

/// Rows [begin, end) of the tokens of a prompt.
struct Rows {
  std::int64_t begin = 0, end = 0;
};

/// Generates any rows of the arrays of one head, in any order, reproducibly. Values have a non-zero mean and norms that
/// vary by about 30 %, as in trained models. Queries have the norm of the keys, so that logits have a standard
/// deviation of key_norm^2 / head_dim.
class SynthHead {
 public:
  SynthHead(const SynthOptions& options, Place place);
  ~SynthHead();

  std::vector<float> keys(Rows rows) const;    ///< [rows, d]
  std::vector<float> values(Rows rows) const;  ///< [rows, dv]
  /// [rows, d] of query head `head` of the layer.
  std::vector<float> queries(std::int64_t head, Rows rows) const;
  /// The same rows as `queries`, with Gaussian errors of `error` times the typical norm of a query.
  std::vector<float> guesses(std::int64_t head, Rows rows, const std::vector<float>& queries, double error) const;
  /// Standard normal rows [rows, dv] of the probes of query head `head`.
  std::vector<float> probes(std::int64_t head, Rows rows) const;
  /// Normal numbers [dv, columns] with the variance 1 / columns.
  std::vector<float> sketch(std::int64_t head, std::int64_t columns) const;

 private:
  class Generator;
  std::unique_ptr<const Generator> generator_;
};

}  // namespace kvbench::trace
