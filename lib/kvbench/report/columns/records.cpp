// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/columns/records.hpp>

#include <functional>

#include <fmt/format.h>

namespace kvbench::report {
namespace {

using RecordColumn = Column<replay::Record>;

/// A number that only rows with status ok have.
template <class F>
auto where_ok(F value) {
  return [value](const replay::Record& r) {
    return r.status == replay::Status::ok ? number_text(std::invoke(value, r)) : "";
  };
}

void add_identity(std::vector<RecordColumn>& c) {
  c = {
      {"run", "run of a sweep file; empty elsewhere", text_of(&replay::Record::run), "text"},
      {"trace", "file name of the trace", text_of(&replay::Record::trace), "text"},
      {"sha256", "first 12 digits of the SHA-256 of the trace", text_of(&replay::Record::sha256), "text"},
      {"model", "model that the trace came from", text_of(&replay::Record::model), "text"},
      {"prompt", "prompt group, or all", text_of(&replay::Record::prompt), "text"},
      {"layer", "layer of the model, or all", text_of(&replay::Record::layer, "all"), "integer"},
      {"kv_head", "kv head, or all", text_of(&replay::Record::kv_head, "all"), "integer"},
      {"head", "query head, or all", text_of(&replay::Record::query_head, "all"), "integer"},
      {"query", "position of the query, or all", text_of(&replay::Record::query, "all"), "integer"},
      {"protocol", "prefill, decode or stream", text_of(&replay::Record::protocol), "text"},
      {"device", "back end that computed the row; for a GPU also its model", text_of(&replay::Record::device), "text"},
      {"method", "name in the registry", text_of(&replay::Record::method), "text"},
      {"params", "parameters that differ from their defaults", text_of(&replay::Record::params), "text"},
      {"budget", "budget as given", text_of(&replay::Record::budget), "text"},
      {"seed", "seed, all, or empty for methods without randomness",
       [](const replay::Record& r) { return r.seeded ? text_of(&replay::Record::seed, "all")(r) : ""; }, "integer"},
      {"dense", "1 where the layer was kept exact by --dense-layers",
       [](const replay::Record& r) { return r.dense ? "1" : "0"; }, "integer"},
      {"status", "ok, skipped, failed or infeasible", text_of(&replay::Record::status), "text"},
      {"reason", "why the row is not ok, or what it leaves out, and notes of the method",
       text_of(&replay::Record::reason), "text"},
  };
}

void add_kept(std::vector<RecordColumn>& c) {
  const auto add = [&](const char* key, const char* unit, const char* doc, auto value) {
    c.push_back({key, doc, where_ok(value), "number", unit});
  };
  c.push_back({"query_rows", "number of (query, query head, seed) triples behind the row",
               text_of(&replay::Record::query_rows), "integer"});
  c.push_back({"layers", "number of layers that the row summarises",
               [](const replay::Record& r) { return fmt::format("{}", r.layers.size()); }, "integer"});
  c.push_back({"model_layers", "number of layers of the model; the trace may have fewer",
               text_of(&replay::Record::model_layers), "integer"});
  add("context_tokens", "tokens", "tokens that the budget refers to: the context, without those of --protect-outside",
      &replay::Record::context_tokens);
  add("budget_tokens", "tokens", "the budget in tokens", &replay::Record::budget_tokens);
  add("kept_tokens", "tokens", "entries that answer a query, without those that the harness keeps exactly",
      &replay::Record::kept_tokens);
  add("kept_fraction", "", "kept_tokens / context_tokens",
      [](const replay::Record& r) { return r.kept_tokens / r.context_tokens; });
  add("kv_bytes", "B", "keys and values held per kv head", [](const replay::Record& r) { return r.bytes.kv; });
  add("meta_bytes", "B", "weights, counts, ids, centroids, bounds held per kv head",
      [](const replay::Record& r) { return r.bytes.meta; });
  add("total_bytes", "B", "kv_bytes + meta_bytes",
      [](const replay::Record& r) { return r.bytes.of(CostKind::memory); });
  add("full_bytes", "B", "the exact cache of the same tokens", [](const replay::Record& r) { return r.bytes.full; });
  add("compression", "", "full_bytes / total_bytes",
      [](const replay::Record& r) { return r.bytes.full / r.bytes.of(CostKind::memory); });
  add("fast_bytes", "B", "part of total_bytes in the fast memory of the processor",
      [](const replay::Record& r) { return r.bytes.fast; });
  add("slow_bytes", "B", "part of total_bytes in slower memory (the full cache of retrieval methods)",
      [](const replay::Record& r) { return r.bytes.slow; });
  add("bytes_read", "B", "bytes that one query of a kv head reads, over all its query heads",
      [](const replay::Record& r) { return r.bytes.read; });
  add("peak_bytes", "B",
      "largest memory allocated while compressing one head, in addition to the arrays of the trace (fp32)",
      &replay::Record::peak_bytes);
  c.push_back({"costs",
               "alone: seconds, flops and peak_bytes are those of the configuration by itself; shared: it ran with "
               "other budgets or seeds of its method, and work in common counts for the one that was computed first "
               "(see --standalone)",
               [](const replay::Record& r) { return std::string(r.alone ? "alone" : "shared"); }, "text"});
  add("compress_flops", "flop", "declared operations of compression, sum over heads, mean over seeds",
      &replay::Record::compress_flops);
  add("attend_flops", "flop", "declared operations of answering, sum over heads, mean over seeds",
      &replay::Record::attend_flops);
}

/// The mean of a metric and the quantile of its bad tail; `all`: every figure of a summary.
template <class F>
void add_summary(std::vector<RecordColumn>& c, std::string_view name, std::string_view doc, replay::Better better,
                 bool all, F of) {
  const auto add = [&](const char* suffix, const char* what, double replay::Summary::*field) {
    c.push_back({fmt::format("{}{}", name, suffix), fmt::format("{}{}", doc, what),
                 where_ok([of, field](const replay::Record& r) { return of(r).*field; }), "number"});
  };
  add("_mean", ": mean", &replay::Summary::mean);
  if (all) add("_p50", ": median", &replay::Summary::p50);
  if (all) add("_p90", ": 90 % quantile", &replay::Summary::p90);
  if (better == replay::Better::larger)
    add("_p1", ": 1 % quantile", &replay::Summary::p1);
  else
    add("_p99", ": 99 % quantile", &replay::Summary::p99);
  if (!all) return;
  add("_max", ": largest", &replay::Summary::max);
  add("_lo", ": lower end of the 95 % bootstrap interval of the mean; empty where the row has fewer than two blocks",
      &replay::Summary::lo);
  add("_hi", ": upper end of the 95 % bootstrap interval of the mean", &replay::Summary::hi);
}

/// Columns of the paired comparison with the best row of the group.
void add_best(std::vector<RecordColumn>& c) {
  c.push_back({"best",
               "configuration with the lowest rel_err_mean for this trace, prompt, layer and budget, except exact and "
               "oracle-topk",
               text_of(&replay::Record::best), "text"});
  c.push_back({"diff_best", "mean of rel_err minus that of the best, paired by query, query head and seed",
               where_ok(&replay::Record::diff_best), "number"});
  c.push_back({"diff_best_lo",
               "lower end of its 95 % bootstrap interval; empty where the row has fewer than two blocks",
               where_ok([](const replay::Record& r) { return r.diff_best_interval.lo; }), "number"});
  c.push_back({"diff_best_hi", "upper end of this interval",
               where_ok([](const replay::Record& r) { return r.diff_best_interval.hi; }), "number"});
  c.push_back({"tied",
               "1 where the row is not distinguishable from the best (Holm over the group at 5 %), else 0; empty where "
               "the replay has too few blocks to distinguish any rows",
               [](const replay::Record& r) { return r.tied ? (*r.tied ? "1" : "0") : ""; }, "integer"});
  c.push_back({"blocks", "independent blocks of 16 neighbouring queries, the units of this comparison",
               [](const replay::Record& r) { return r.sums.seeds > 0 ? fmt::format("{}", r.blocks) : ""; }, "integer"});
}

std::vector<RecordColumn> make_record_columns() {
  std::vector<RecordColumn> c;
  add_identity(c);
  add_kept(c);
  for (std::size_t m = 0; m < replay::metric_count; ++m) {
    const replay::MetricInfo& info = replay::attention_metrics[m].info;
    const bool main = m == index_of(replay::metric("rel_err"));
    add_summary(c, info.name, info.meaning, info.better, main, [m](const replay::Record& r) { return r.metrics[m]; });
    if (main) {
      add_summary(c, "rel_err_fro",
                  "Frobenius norm of the differences over the queries / of the exact outputs, by query head",
                  replay::Better::smaller, false, [](const replay::Record& r) { return r.rel_err_fro; });
      add_best(c);
    }
  }
  c.push_back(version_column<replay::Record>("text"));
  c.push_back(commit_column<replay::Record>("text"));
  c.push_back({"isa", "instruction set of the kernels", text_of(&replay::Record::isa), "text"});
  const auto time = [&](const char* key, const char* doc, double replay::Record::*field) {
    c.push_back({key, doc, where_ok(field), "number", "s", true});
  };
  time("compress_s", "time of compression, sum over heads, mean over seeds", &replay::Record::compress_s);
  time("attend_s",
       "time of answering in addition to the exact pass, 0 where a method other than exact keeps all tokens; the time "
       "of attention that several budgets share is divided in proportion to their entries; sum over heads, mean over "
       "seeds",
       &replay::Record::attend_s);
  time("exact_s", "time of the exact pass, sum over heads", &replay::Record::exact_s);
  return c;
}

}  // namespace

std::span<const RecordColumn> record_columns() {
  static const std::vector<RecordColumn> table = make_record_columns();
  return table;
}

std::string csv_table(std::span<const replay::Record> records, bool times) {
  return csv_of(record_columns(), records, times);
}

}  // namespace kvbench::report
