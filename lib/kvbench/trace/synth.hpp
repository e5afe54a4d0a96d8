// SPDX-License-Identifier: Apache-2.0
// Synthetic traces with a known structure, for tests and for checks of theory. Equal seeds give equal bytes on every
// machine, with column sums where the instruction set is the same.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include <kvbench/kernels/backend.hpp>
#include <kvbench/trace/schema.hpp>
#include <kvbench/trace/writer.hpp>

namespace kvbench::trace {

enum class Pattern {
  gaussian,       ///< independent Gaussian keys, values and queries
  clusters,       ///< keys near `clusters` centres, queries near the same centres
  sinks,          ///< the first few tokens get most of the attention, as in trained models
  heavy_hitters,  ///< a small random set of tokens gets attention from every query
  needle,         ///< one token in the middle gets the attention of the last queries
};

/// In models the stream is several times as large as what a layer adds to it.
inline constexpr float synth_stream = 4;

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
  /// MLA: the values are the first value_dim channels of the keys (LayerInfo::values_in_keys).
  bool values_in_keys = false;
  std::int64_t prompts = 1;
  std::int64_t clusters = 32;
  double spread = 0.3;  ///< within-cluster standard deviation relative to the distance between centres
  double key_norm = 8;  ///< typical |k|; logits have standard deviation of about key_norm^2 / head_dim
  /// Added to the last channel of every key of layer 0, as the key biases of some models are (docs/key-biases.md). It
  /// adds one number to all logits of a query, so that the exact attention is the same.
  double key_bias = 0;
  bool column_sums = true;  ///< write column sums of the exact attention of the context's queries
  /// Number of evenly spaced queries from which column sums are estimated; each also counts for the queries since the
  /// previous one. Exact sums take time proportional to num_tokens^2. 0: exact, over all queries. Recorded in
  /// source_version.
  std::int64_t column_queries = 0;
  /// Of the kernels that compute column sums, whose last bits depend on it. Recorded in source_version.
  Isa isa = best_isa();
  /// also write speculated queries, with errors of this share of the typical norm of a query
  std::optional<double> speculation_error;
  /// Also write this number of Gaussian probes of all tokens after the context, sketches of an orthogonal W_O, and
  /// norms of a residual stream in which each channel has the size synth_stream. 0: none of these.
  std::int64_t probes = 0;
  Dtype dtype = Dtype::f32;
  bool compress = false;
  std::uint32_t seed = 0;
};

/// How a trace is made; nothing of it changes the trace.
struct SynthRun {
  int threads = 0;  ///< for random numbers and column sums; see allowed_threads()
  /// in query heads, with parts of those in progress, from any thread
  std::function<void(double done, std::int64_t total)> progress;
  const std::atomic<bool>* stop = nullptr;  ///< set: Interrupted is thrown soon
};

/// Writes a synthetic trace in blocks of rows, because a trace may be far larger than memory. For column sums, the keys
/// of the context of one kv head are in memory at a time, and what column_sums() needs beside them. Throws Error with
/// field and remedy for invalid options.
void synthesize(const std::string& path, const SynthOptions& options, const SynthRun& run = {});

}  // namespace kvbench::trace
