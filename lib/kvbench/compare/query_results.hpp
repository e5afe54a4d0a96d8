// SPDX-License-Identifier: Apache-2.0
// Values of one metric per query, or per document of an evaluation, which comparisons read from any kind of result
// file.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <kvbench/core/paired_test.hpp>
#include <kvbench/replay/records/anchors.hpp>
#include <kvbench/replay/records/results.hpp>

namespace kvbench::compare {

/// What identifies the documents of an evaluation (kveval) beside the model; texts of its table.
struct EvalSetting {
  std::string text, task, question, context_tokens, inject, inject_layer;
  std::string method_layers, model_layers, weights, kv_dtype, protect, decoded, generate;
  bool empty() const { return task.empty(); }
  friend auto operator<=>(const EvalSetting&, const EvalSetting&) = default;
};

/// One query head in one layer, prompt and run, or a document of an evaluation: a prompt with one value, whose `sha256`
/// is that of the model. Texts are empty where the file does not have them.
struct QueryPlace {
  std::string run, trace, sha256, model, prompt, protocol;  ///< sha256: its first 12 digits
  std::int64_t layer = 0, model_layers = 0;                 ///< model_layers: their number; 0: the file does not say
  Index kv_head = 0, query_head = 0;
  Index context_tokens = 0;             ///< tokens that budgets refer to; 0: the file does not say
  std::vector<std::int32_t> positions;  ///< positions of the queries in the prompt; of a document: one
  Index per_block = queries_per_block;  ///< neighbouring positions that count as one observation
  EvalSetting eval;                     ///< empty: a query head
  std::string document_sha256;          ///< of the tokens of the document, which identify it; empty: a query head

  /// What tells prompts and documents apart: names of documents say nothing about their tokens.
  const std::string& identity() const { return eval.empty() ? prompt : document_sha256; }
};

/// A method with its parameters, at one budget and seed.
struct QueryConfiguration {
  std::string method, params;
  Budget budget;
  std::uint32_t seed = 0;  ///< 0 for methods without randomness
  bool seeded = false;
};

/// The status of this name, if there is one.
inline std::optional<replay::Status> find_status(std::string_view name) {
  for (const replay::Status status :
       {replay::Status::ok, replay::Status::skipped, replay::Status::failed, replay::Status::infeasible}) {
    if (name == name_of(status)) return status;
  }
  return std::nullopt;
}

/// The values of a configuration at a place.
struct QueryValues {
  replay::Status status = replay::Status::ok;
  std::string reason;
  bool dense = false;                         ///< whether the layer was kept exact
  Index compressed_layers = 0;                ///< of a document: layers that the method compressed
  double bytes_held = NAN, bytes_read = NAN;  ///< per kv head and per query of it; NaN where the file does not say
  std::vector<double> values;  ///< one per position where the status is ok; NaN where the metric does not apply
};

/// The tokens that entries name, of the last run of queries that one state of the method answered.
struct NamedTokens {
  bool per_head = false;
  Index queries = 1;              ///< of the run; 1 where all of them have the same entries
  Index width = 0;                ///< entries per row
  std::vector<std::int32_t> ids;  ///< [rows, width]; -1: an unused slot

  /// Those of query i of the run for query head g of the query group.
  std::span<const std::int32_t> row(Index g, Index i) const {
    const Index at = ((per_head ? g : 0) * queries + i) * width;
    return std::span(ids).subspan(static_cast<std::size_t>(at), static_cast<std::size_t>(width));
  }
};

class QueryResults {
 public:
  virtual ~QueryResults() = default;
  virtual const std::string& path() const = 0;
  virtual const std::vector<QueryPlace>& places() const = 0;
  virtual const std::vector<QueryConfiguration>& configurations() const = 0;
  /// Absent where the file has no results of this configuration at this place.
  virtual std::optional<QueryValues> read(std::size_t place, std::size_t configuration) const = 0;
  /// ConfigurationResult::probe_sums of the kv head of a place, and of how many scored tokens they are; empty and 0
  /// where the trace had no probes or the file does not hold them. Throws as read().
  virtual std::vector<double> probe_sums(std::size_t /*place*/, std::size_t /*configuration*/) const { return {}; }
  virtual Index scored_tokens(std::size_t /*place*/) const { return 0; }
  /// Measured / predicted KL of the anchors of the trace of a place (replay::AnchorRatio::factor); 1 where it has none.
  virtual double anchor_factor(std::size_t /*place*/, replay::ChangeKind /*kind*/) const { return 1; }
  /// One item per table of entries; empty where the file does not hold them.
  virtual std::vector<NamedTokens> entries(std::size_t /*place*/, std::size_t /*configuration*/) const { return {}; }
};

}  // namespace kvbench::compare
