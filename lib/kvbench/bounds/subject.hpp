// SPDX-License-Identifier: Apache-2.0
// What checks run on: one kv head of a trace, or a synthetic stream built so that bounds are not vacuous.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <kvbench/methods/contract/method.hpp>
#include <kvbench/replay/exact/head.hpp>
#include <kvbench/trace/reader.hpp>

namespace kvbench {

/// A context and queries that see all of it. They are fixed before any sketch draws: every theorem here assumes that.
struct Subject {
  std::string source, prompt;  ///< as in CheckRow
  HeadPrompt head;             ///< the context, for methods; layer and kv head of the trace
  std::vector<float> keys;     ///< [n, d] the same on the host
  std::vector<float> values;   ///< [n, dv]
  std::vector<float> queries;  ///< [m, d] evaluated queries, spread evenly over positions and query heads
  Index tokens() const { return head.keys.rows(); }
  Index d() const { return head.keys.cols(); }
  Index dv() const { return head.values.cols(); }
  Index num_queries() const { return static_cast<Index>(queries.size()) / d(); }
  std::span<const float> key(Index i) const { return {keys.data() + i * d(), static_cast<std::size_t>(d())}; }
  std::span<const float> value(Index i) const { return {values.data() + i * dv(), static_cast<std::size_t>(dv())}; }
  std::span<const float> query(Index i) const { return {queries.data() + i * d(), static_cast<std::size_t>(d())}; }
};

/// A subject that can be loaded on any backend.
struct SubjectSource {
  std::string name;  ///< for progress and errors
  std::function<Subject(Backend&)> load;
};

/// kv heads of a trace whose layers have neither a sliding window nor a softcap: all layers and heads where the lists are
/// empty. At most `queries` queries each. Throws Error for unknown layers and heads. `reader` must outlive the sources.
std::vector<SubjectSource> trace_subjects(const trace::Reader& reader, const std::vector<std::int64_t>& layers,
                                          const std::vector<std::int64_t>& kv_heads, Index queries);

/// Streams on which theorems say something. Each is seeded and the same on every machine.
std::vector<SubjectSource> synthetic_subjects(Index queries);

/// At most `count` of the rows [n, d], evenly spaced.
std::vector<float> evenly_spaced_rows(const std::vector<float>& rows, Index d, Index count);

/// A subject from arrays: keys [n, d], values [n, dv], queries [m, d].
Subject make_subject(std::string name, std::vector<float> keys, std::vector<float> values, std::vector<float> queries, Index d,
                     Index dv, float scale, Backend& backend);

}  // namespace kvbench
