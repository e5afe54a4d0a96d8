// SPDX-License-Identifier: Apache-2.0
// Reads a trace. This is the trust boundary: everything is checked here, once, before it is allocated or believed.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <kvbench/trace/schema.hpp>

namespace kvbench::trace {

/// An open trace file. Only what is asked for is read: a trace may be far larger than memory. Safe to use from several threads
/// (reads are serialised).
class Reader {
 public:
  /// Opens and validates `path`: version, attributes, shapes, types, positions, and dataset sizes against the file's length.
  /// Throws Error (exit 2) naming file and dataset where the file is missing, truncated, corrupt, of another format or version,
  /// or inconsistent.
  explicit Reader(const std::string& path);
  ~Reader();
  Reader(Reader&&) noexcept;
  Reader& operator=(Reader&&) noexcept;

  const std::string& path() const;
  const TraceInfo& info() const;

  /// One head's slab of an array of layer `layer` (an entry of prompt.layers), row-major, widened to fp32:
  /// keys, values, keys_pre_rope of kv head `head`: [n, d or dv]; queries, queries_pre_rope, speculated_queries,
  /// attention_output of query head `head`: [m, d or dv]; column_sums of query head `head`: [n].
  /// Throws Error naming the dataset where a value is NaN or infinite, IoError where reading fails.
  std::vector<float> read_head(const PromptInfo& prompt, const LayerInfo& layer, Array array, std::int64_t head) const;

  /// SHA-256 of the file's bytes in lower-case hex: what PATH.sha256 states (stated_sha256()), else computed at the first call
  /// and remembered.
  const std::string& sha256() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace kvbench::trace
