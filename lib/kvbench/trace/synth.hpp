// SPDX-License-Identifier: Apache-2.0
// Synthetic traces with a known structure, for tests and for checks of theory: seeded, the same bytes on every machine.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <kvbench/trace/schema.hpp>
#include <kvbench/trace/writer.hpp>

namespace kvbench::trace {

enum class Pattern {
  gaussian,       ///< independent Gaussian keys, values and queries
  clusters,       ///< keys near `clusters` centres, queries near the same centres
  sinks,          ///< the first few tokens draw most of the attention, as in trained models
  heavy_hitters,  ///< a small random set of tokens draws attention from every query
  needle,         ///< one token in the middle that the last queries look for
};

struct SynthOptions {
  Pattern pattern = Pattern::gaussian;
  std::int64_t num_tokens = 4096;
  std::int64_t prompt_tokens = 3840;
  std::int64_t num_queries = 384;  ///< the last positions of the trace
  std::int64_t layers = 2;
  std::int64_t query_heads = 4;
  std::int64_t kv_heads = 2;
  std::int64_t head_dim = 64;
  std::int64_t value_dim = 64;
  std::int64_t prompts = 1;
  std::int64_t clusters = 32;
  double spread = 0.3;      ///< within-cluster standard deviation relative to the distance between centres
  double key_norm = 8;      ///< typical |k|; logits have standard deviation of about key_norm^2 / head_dim
  bool column_sums = true;  ///< of the prompt's queries, by exact attention
  /// Estimate the column sums from this many evenly spaced queries, each standing for those up to the one before: exact sums
  /// take time in proportion to num_tokens^2. 0: exact, of all queries. The trace's source_version says so.
  std::int64_t column_queries = 0;
  std::optional<double> speculation_error;  ///< also write speculated queries, off by this share of a query's typical norm
  Dtype dtype = Dtype::f32;
  bool compress = false;
  std::uint32_t seed = 0;
};

/// Writes a synthetic trace, block of rows by block of rows: a trace may be far larger than memory, and with exact or estimated
/// column sums the keys and queries of one head at a time are held. Throws Error for options that do not fit together, naming
/// field and remedy.
void synthesize(const std::string& path, const SynthOptions& options);

}  // namespace kvbench::trace
