// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/column.hpp>

#include <cmath>

#include <fmt/format.h>

#include <kvbench/core/version.hpp>

namespace kvbench {
namespace {

using Text = std::function<std::string(const Record&)>;

template <class T>
std::string or_all(const std::optional<T>& value) {
  return value ? fmt::format("{}", *value) : "all";
}

/// A value that exists only where the row is ok.
Text measured(std::function<double(const Record&)> value) {
  return [value = std::move(value)](const Record& r) { return r.status == Status::ok ? number_text(value(r)) : ""; };
}

void add_identity(std::vector<Column>& c) {
  c.push_back({"run", "", "text", "run of a sweep file; empty elsewhere", [](const Record& r) { return r.run; }});
  c.push_back({"trace", "", "text", "file name of the trace", [](const Record& r) { return r.trace; }});
  c.push_back({"sha256", "", "text", "first 12 digits of the SHA-256 of the trace", [](const Record& r) { return r.sha256; }});
  c.push_back({"model", "", "text", "model that the trace came from", [](const Record& r) { return r.model; }});
  c.push_back({"prompt", "", "text", "prompt group, or all", [](const Record& r) { return r.prompt; }});
  c.push_back({"layer", "", "integer", "layer of the model, or all", [](const Record& r) { return or_all(r.layer); }});
  c.push_back({"kv_head", "", "integer", "kv head, or all", [](const Record& r) { return or_all(r.kv_head); }});
  c.push_back({"head", "", "integer", "query head, or all", [](const Record& r) { return or_all(r.query_head); }});
  c.push_back({"query", "", "integer", "position of the query, or all", [](const Record& r) { return or_all(r.query); }});
  c.push_back(
      {"protocol", "", "text", "prefill, decode or stream", [](const Record& r) { return std::string(name_of(r.protocol)); }});
  c.push_back({"device", "", "text", "backend that computed the row; of a GPU its model too",
               [](const Record& r) { return r.device; }});
  c.push_back({"method", "", "text", "name in the registry", [](const Record& r) { return r.method; }});
  c.push_back({"params", "", "text", "parameters that differ from their defaults", [](const Record& r) { return r.params; }});
  c.push_back({"budget", "", "text", "budget as given", [](const Record& r) { return r.budget; }});
  c.push_back({"seed", "", "integer", "seed, all, or empty for methods without randomness",
               [](const Record& r) { return r.seeded ? or_all(r.seed) : ""; }});
  c.push_back({"dense", "", "integer", "1 where the layer was kept exact by --dense-layers",
               [](const Record& r) { return r.dense ? "1" : "0"; }});
  c.push_back({"status", "", "text", "ok, skipped, failed or infeasible",
               [](const Record& r) { return std::string(name_of(r.status)); }});
  c.push_back({"reason", "", "text", "why a row is not ok; else what it leaves out, and what the method has to say",
               [](const Record& r) { return r.reason; }});
}

void add_kept(std::vector<Column>& c) {
  const auto add = [&](const char* key, const char* unit, const char* doc, double Record::*field) {
    c.push_back({key, unit, "number", doc, measured([field](const Record& r) { return r.*field; })});
  };
  const auto bytes = [&](const char* key, const char* doc, std::function<double(const Bytes&)> value) {
    c.push_back({key, "B", "number", doc, measured([value = std::move(value)](const Record& r) { return value(r.bytes); })});
  };
  c.push_back({"query_rows", "", "integer", "number of (query, query head, seed) triples behind the row",
               [](const Record& r) { return fmt::format("{}", r.query_rows); }});
  add("context_tokens", "tokens", "tokens that were compressed", &Record::context_tokens);
  add("budget_tokens", "tokens", "what the budget means in tokens", &Record::budget_tokens);
  add("kept_tokens", "tokens", "entries that answer a query, without what the harness keeps exactly", &Record::kept_tokens);
  c.push_back({"kept_fraction", "", "number", "kept_tokens / context_tokens",
               measured([](const Record& r) { return r.kept_tokens / r.context_tokens; })});
  bytes("kv_bytes", "keys and values held per kv head", [](const Bytes& b) { return b.kv; });
  bytes("meta_bytes", "weights, counts, ids, centroids, bounds held per kv head", [](const Bytes& b) { return b.meta; });
  bytes("total_bytes", "kv_bytes + meta_bytes", [](const Bytes& b) { return b.kv + b.meta; });
  bytes("full_bytes", "the exact cache of the same tokens", [](const Bytes& b) { return b.full; });
  c.push_back({"compression", "", "number", "full_bytes / total_bytes",
               measured([](const Record& r) { return r.bytes.full / (r.bytes.kv + r.bytes.meta); })});
  bytes("fast_bytes", "part of total_bytes beside the processor", [](const Bytes& b) { return b.fast; });
  bytes("slow_bytes", "part of total_bytes where a full cache is left for recall", [](const Bytes& b) { return b.slow; });
  bytes("bytes_read", "read for one query of a kv head, all its query heads", [](const Bytes& b) { return b.read; });
  c.push_back({"peak_bytes", "B", "number",
               "most memory taken while compressing one head, beside the trace's own arrays (fp32)",
               measured([](const Record& r) { return r.peak_bytes; })});
  c.push_back({"costs", "", "text",
               "alone: seconds, flops and peak_bytes are those of the configuration by itself; shared: it ran with other budgets or "
               "seeds of its method, and work in common counts for the one that was computed first (see --standalone)",
               [](const Record& r) { return std::string(r.alone ? "alone" : "shared"); }});
  c.push_back({"compress_flops", "flop", "number", "declared work of compressing, sum over heads, mean over seeds",
               measured([](const Record& r) { return r.compress_flops; })});
  c.push_back({"attend_flops", "flop", "number", "declared work of answering, sum over heads, mean over seeds",
               measured([](const Record& r) { return r.attend_flops; })});
}

void add_summary(std::vector<Column>& c, const std::string& name, const std::string& doc, bool all,
                 std::function<const Summary&(const Record&)> of) {
  const auto add = [&](const char* suffix, const char* what, double Summary::*field) {
    c.push_back({name + suffix, "", "number", doc + what, measured([of, field](const Record& r) { return of(r).*field; })});
  };
  add("_mean", ": mean", &Summary::mean);
  if (all) add("_p50", ": median", &Summary::p50);
  if (all) add("_p90", ": 90 % quantile", &Summary::p90);
  add("_p99", ": 99 % quantile", &Summary::p99);
  if (!all) return;
  add("_max", ": largest", &Summary::max);
  add("_lo", ": lower end of the 95 % bootstrap interval of the mean", &Summary::lo);
  add("_hi", ": upper end of the 95 % bootstrap interval of the mean", &Summary::hi);
}

/// The paired comparison with the best row of the group.
void add_best(std::vector<Column>& c) {
  c.push_back(
      {"best", "", "text",
       "of this trace, prompt, layer and budget the configuration with the lowest rel_err_mean, exact and oracle-topk aside",
       [](const Record& r) { return r.best; }});
  c.push_back({"diff_best", "", "number", "mean of rel_err less that of the best, paired by query, query head and seed",
               measured([](const Record& r) { return r.diff_best; })});
  c.push_back({"diff_best_lo", "", "number", "lower end of its 95 % bootstrap interval",
               measured([](const Record& r) { return r.diff_best_interval.lo; })});
  c.push_back(
      {"diff_best_hi", "", "number", "upper end of it", measured([](const Record& r) { return r.diff_best_interval.hi; })});
  c.push_back({"tied", "", "integer",
               "1 where the trace cannot tell the row from the best (Holm over the group at 5 %), else 0",
               [](const Record& r) { return r.tied ? (*r.tied ? "1" : "0") : ""; }});
}

/// `by_tokens` is the metric of the same number of steps that counts tokens.
std::string cache_doc(Metric metric, Metric by_tokens, int steps) {
  const std::string_view name = name_of(metric);
  if (name.ends_with("_belady")) {
    return fmt::format("share of a step's clusters that the best cache of as many clusters as {} step(s) need would hold",
                       steps);
  }
  return fmt::format("share of a step's {} that the last {} step(s) selected too",
                     metric == by_tokens ? "recalled tokens in clusters" : "clusters", steps);
}

std::string doc_of(Metric metric) {
  switch (metric) {
    case Metric::rel_err:
      return "|z - z*| / |z*|";
    case Metric::relerr_balancekv:
      return "|z - z*| / |max(z*, 1e-8)|, the released BalanceKV formula";
    case Metric::err_bound_op:
      return "|z - z*| / (|p|_2 |V|_op), SubGen Eq. 3";
    case Metric::err_bound_fro:
      return "|z - z*| / (|p|_2 |V|_F), BalanceKV Eq. 2";
    case Metric::mass_err:
      return "part of rel_err from lost or gained attention mass";
    case Metric::dir_err:
      return "part of rel_err from the direction of what replaces the dropped tokens";
    case Metric::log_z_err:
      return "ln(estimated / exact partition function)";
    case Metric::recall:
      return "share of the top-|I| tokens by q.k among the |I| kept, over droppable tokens";
    case Metric::mass_recall:
      return "attention mass of the kept tokens / that of the top-|I|";
    case Metric::cache_hit_r1:
    case Metric::cache_hit_r1_clusters:
    case Metric::cache_hit_r1_belady:
      return cache_doc(metric, Metric::cache_hit_r1, 1);
    case Metric::cache_hit_r2:
    case Metric::cache_hit_r2_clusters:
    case Metric::cache_hit_r2_belady:
      return cache_doc(metric, Metric::cache_hit_r2, 2);
    case Metric::cache_hit_r4:
    case Metric::cache_hit_r4_clusters:
    case Metric::cache_hit_r4_belady:
      return cache_doc(metric, Metric::cache_hit_r4, 4);
    case Metric::count:
      break;
  }
  return "";
}

std::vector<Column> make_columns() {
  std::vector<Column> c;
  add_identity(c);
  add_kept(c);
  for (std::size_t m = 0; m < metric_count; ++m) {
    const auto metric = static_cast<Metric>(m);
    add_summary(c, std::string(name_of(metric)), doc_of(metric), metric == Metric::rel_err,
                [m](const Record& r) -> const Summary& { return r.metrics[m]; });
    if (metric == Metric::rel_err) {
      add_summary(c, "rel_err_fro", "Frobenius norm of the differences over the queries / of the exact outputs, by query head",
                  false, [](const Record& r) -> const Summary& { return r.rel_err_fro; });
      add_best(c);
    }
  }
  c.push_back({"version", "", "text", "kvbench version", [](const Record&) { return std::string(version()); }});
  c.push_back(
      {"commit", "", "text", "commit that kvbench was built from", [](const Record&) { return std::string(commit()); }});
  c.push_back({"isa", "", "text", "instruction set of the kernels", [](const Record& r) { return r.isa; }});
  const auto time = [&](const char* key, const char* doc, double Record::*field) {
    c.push_back({key, "s", "number", doc, measured([field](const Record& r) { return r.*field; }), true});
  };
  time("compress_s", "compressing, sum over heads, mean over seeds", &Record::compress_s);
  time("attend_s",
       "answering beyond the shared exact pass, 0 where all tokens are kept; attention that budgets share is divided among them by "
       "their entries; sum over heads, mean over seeds",
       &Record::attend_s);
  time("exact_s", "the shared exact pass, sum over heads", &Record::exact_s);
  return c;
}

}  // namespace

std::span<const Column> columns() {
  static const std::vector<Column> table = make_columns();
  return table;
}

std::string number_text(double value) {
  if (std::isnan(value)) return "";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  if (value == std::floor(value) && std::abs(value) < 1e15) return fmt::format("{:.0f}", value);
  return fmt::format("{}", value);
}

}  // namespace kvbench
