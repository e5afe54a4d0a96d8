// SPDX-License-Identifier: Apache-2.0
// A trace small enough for serial loops over its arrays, methods that consist of one function, and answers computed
// term by term.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <kvbench/replay/measure/host_entries.hpp>
#include <kvbench/replay/replay.hpp>
#include <kvbench/trace/synth.hpp>

#include <support/backends.hpp>
#include <support/messages.hpp>
#include <support/temp_folder.hpp>

namespace kvbench::testing {

/// 40 tokens, 28 of them the context, all queries; 2 layers, 4 query heads on 2 kv heads, d = 8, dv = 6; with column
/// sums.
inline trace::SynthOptions small_options() {
  return {.num_tokens = 40,
          .prompt_tokens = 28,
          .num_queries = 40,
          .layers = 2,
          .query_heads = 4,
          .kv_heads = 2,
          .head_dim = 8,
          .value_dim = 6,
          .clusters = 4,
          .key_norm = 3};
}

/// A synthetic trace in its own folder.
class SmallTrace {
 public:
  explicit SmallTrace(const trace::SynthOptions& options = small_options());
  const trace::Reader& reader() const { return *reader_; }

  /// A copy of this trace in which the queries at the positions from `begin` on are different.
  std::unique_ptr<trace::Reader> with_other_queries(std::int64_t begin) const;

 private:
  TempFolder folder_;
  std::unique_ptr<trace::Reader> reader_;
};

/// The function of a single-function method, which opens a cache.
using OpenCache = std::function<std::unique_ptr<methods::CompressedCache>(const methods::HeadPrompt&, Index budget,
                                                                          std::uint32_t seed, Backend&)>;
methods::MethodInfo method_of(std::string name, OpenCache open);

/// A cache whose entries are the result of a function; it takes all tokens at once.
class FunctionCache : public methods::CompressedCache {
 public:
  using Entries = std::function<methods::EntryTables(const methods::QueryBlock&)>;
  explicit FunctionCache(Entries entries) : entries_(std::move(entries)) {}
  Index takes(const methods::TokenBlock& tokens) override { return tokens.size(); }
  void append(const methods::TokenBlock&) override {}
  methods::EntryTables entries(const methods::QueryBlock& queries) const override { return entries_(queries); }
  methods::Footprint footprint() const override { return {}; }

 private:
  Entries entries_;
};
/// A method whose tables do not depend on its state.
methods::MethodInfo answering(std::string name,
                              std::function<methods::EntryTables(const methods::QueryBlock&, Backend&)> entries);
/// One table of ids.
methods::EntryTables ids_table(Backend& backend, std::vector<TokenId> ids);
/// Tables for `queries` queries, on the host.
replay::HostEntries host_entries(const methods::EntryTables& tables, Index queries, Backend& backend);

/// One kv head of the small trace, as arrays for serial loops.
struct Arrays {
  Arrays(const trace::Reader& reader, std::size_t layer, Index kv_head);

  Index n, d, dv, group;
  double scale;
  std::vector<float> keys, values;
  std::vector<std::vector<float>> queries;  ///< by query head of the group, one row per position
  double logit(Index g, Index position, Index token) const;
  std::vector<double> value(Index token) const;
};

struct TermEntry {
  Index id = 0;
  double num = 1, den = 1;
  std::vector<double> value = {};  ///< empty: that of the token
};
/// Entries that answer query head g at a position.
using TermEntries = std::function<std::vector<TermEntry>(Index g, Index position)>;

/// The answer [dv] and its partition function.
struct TermAnswer {
  std::vector<double> out;
  double log_z = 0;
};
TermAnswer attend_to(const Arrays& head, Index g, Index position, const std::vector<TermEntry>& entries);
std::vector<TermEntry> tokens_between(Index begin, Index end);

/// Checks rel_err, both bounds, log_z_err, the decomposition and the raw outputs of a configuration, term by term.
void check_result(const Arrays& head, const replay::HeadResult& result, std::size_t configuration,
                  const TermEntries& entries);

replay::ReplayRequest request_of(std::vector<const methods::MethodInfo*> methods, Index budget);
/// One method with these settings.
replay::ReplayRequest request_of(const methods::MethodInfo& method, const std::vector<methods::Assignment>& settings,
                                 Index budget);
/// One thread, with outputs and entries kept.
inline const replay::RunOptions serial{.threads = 1, .keep_raw = true};
inline float metric(const replay::ConfigurationResult& result, std::size_t row, replay::Metric which) {
  return result.metrics.at(row)[which];
}

}  // namespace kvbench::testing
