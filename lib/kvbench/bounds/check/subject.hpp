// SPDX-License-Identifier: Apache-2.0
// The inputs of checks: one kv head of a trace, or a synthetic stream on which the bounds are not vacuous.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <kvbench/methods/contract/method.hpp>
#include <kvbench/replay/exact/head.hpp>
#include <kvbench/trace/reader.hpp>

namespace kvbench::bounds {

/// A context, and queries that attend to all of it. Both are fixed before any random number is drawn, as every theorem
/// assumes.
struct Subject {
  std::string source, prompt;  ///< as in CheckRow
  methods::HeadPrompt head;    ///< the context as methods see it; layer and kv head of the trace
  std::vector<float> keys;     ///< [n, d], on the host
  std::vector<float> values;   ///< [n, dv], on the host
  std::vector<float> queries;  ///< [m, d] evaluated queries, evenly spaced over positions and query heads
  Index tokens() const { return head.keys.rows(); }
  Index d() const { return head.keys.cols(); }
  Index dv() const { return head.values.cols(); }
  methods::HeadTokens all_tokens() const { return {.keys = head.keys, .values = head.values, .scale = head.scale}; }
  Index num_queries() const { return static_cast<Index>(queries.size()) / d(); }
  std::span<const float> key(Index i) const { return {keys.data() + i * d(), static_cast<std::size_t>(d())}; }
  std::span<const float> value(Index i) const { return {values.data() + i * dv(), static_cast<std::size_t>(dv())}; }
  std::span<const float> query(Index i) const { return {queries.data() + i * d(), static_cast<std::size_t>(d())}; }
};

/// A subject that is loaded when a check needs it, on the backend of its thread.
struct SubjectSource {
  std::string name;  ///< for error messages
  std::function<Subject(Backend&)> load;
};

/// The kv heads of a trace on layers without sliding window and softcap; empty lists mean all layers and all heads.
/// Each subject has at most `queries` queries. Throws Error for unknown layers and heads. `reader` must outlive the
/// sources.
std::vector<SubjectSource> trace_subjects(const trace::Reader& reader, const std::vector<std::int64_t>& layers,
                                          const std::vector<std::int64_t>& kv_heads, Index queries);

/// At most `count` of the rows [n, d], evenly spaced.
std::vector<float> evenly_spaced_rows(const std::vector<float>& rows, Index d, Index count);

/// The head with a context of its first tokens; without column sums and keys before RoPE.
methods::HeadPrompt first_context(methods::HeadPrompt head, Index tokens);
/// The first tokens of a subject, with all of its queries; without column sums and keys before RoPE.
Subject first_tokens(const Subject& subject, Index tokens);

/// One block of all queries, which attend to all tokens. Its rows are queries of one head: positions only order them.
methods::QueryBlock attending_block(const Subject& subject, Backend& backend);

/// A subject as arrays on the host.
struct SubjectArrays {
  std::string name;                          ///< subjects of different names have different draws
  std::vector<float> keys, values, queries;  ///< [n, d], [n, dv], [m, d]
  Index d = 1, dv = 1;
  float scale = 1;
};
Subject make_subject(SubjectArrays arrays, Backend& backend);

/// Streams on which the bounds of the theorems are not vacuous. Each is the same on every machine.
std::vector<SubjectSource> synthetic_subjects(Index queries);

}  // namespace kvbench::bounds
