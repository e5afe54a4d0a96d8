// SPDX-License-Identifier: Apache-2.0
// Reads a trace. This is the trust boundary: everything is checked once, before memory is allocated or a value is used.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <kvbench/trace/schema.hpp>

namespace kvbench::trace {

/// An open trace file. Only requested arrays are read, because a trace may be far larger than memory. Thread-safe
/// (reads are serialised).
class Reader {
 public:
  /// Opens and validates `path`: version, attributes, shapes, types, positions, and dataset sizes against the length of
  /// the file. Throws Error (exit 2) with file and dataset where the file is missing, truncated, corrupt, inconsistent,
  /// locked by a program that writes it, or of another format or version.
  explicit Reader(const std::string& path);
  ~Reader();
  Reader(Reader&&) noexcept;
  Reader& operator=(Reader&&) noexcept;

  const std::string& path() const;
  const TraceInfo& info() const;

  /// One head's slab of an array of layer `layer` (an entry of prompt.layers), row-major, widened to fp32: keys,
  /// values, keys_pre_rope of kv head `head`: [n, d or dv]; queries, queries_pre_rope, speculated_queries,
  /// attention_output of query head `head`: [m, d or dv]; column_sums of query head `head`: [n]; output_sketch of query
  /// head `head`: [dv, s]; probes of query head `head`: [R * T, dv], in nats per unit of attention output, with their
  /// scales; residual_norm, head 0: [m]. Values in keys are read from these. Throws Error with the dataset where a
  /// value is NaN or infinite, IoError where reading fails or the file has changed since it was opened.
  std::vector<float> read_head(const PromptInfo& prompt, const LayerInfo& layer, Array array, std::int64_t head) const;

  /// SHA-256 of the bytes of the file in lower-case hex: the digest in PATH.sha256 (stated_sha256()), else computed at
  /// the first call and stored. Throws IoError where the file has changed since it was opened.
  const std::string& sha256() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace kvbench::trace
