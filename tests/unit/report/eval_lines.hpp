// SPDX-License-Identifier: Apache-2.0
// Small tables of an evaluation, as CSV files that reports read.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <kvbench/report/columns/tables.hpp>
#include <kvbench/report/document/writers.hpp>
#include <kvbench/report/report.hpp>

namespace kvbench::report_test {

inline const eval::EvalSettings all_layers{.layers = "0-29",
                                           .model_layers = 30,
                                           .weights = "f32",
                                           .kv_dtype = "f16",
                                           .protect = "0,0",
                                           .decoded = "method",
                                           .document_seed = 0};

struct EvalLine {
  const char *method = "sink", *budget = "25%mem", *document = "all", *task = "text", *text = "book.txt";
  double kl = 1, error = 0.5, recall = 0.5;
  eval::Injection injection = {};
  std::optional<std::int64_t> layer = {};
  Index documents = 2;
  eval::EvalSettings settings = all_layers;
  Index compressed_layers = 30;
  const char* documents_sha256 = "d1d2";
};

inline eval::EvalRecord made_record(const EvalLine& line) {
  eval::EvalRecord r;
  r.model = "m.gguf", r.sha256 = "abc", r.text = line.text, r.task = line.task, r.document = line.document;
  r.document_sha256 = r.document == "all" ? "" : r.document, r.documents_sha256 = line.documents_sha256;
  r.settings = line.settings, r.compressed_layers = line.compressed_layers;
  r.context_tokens = 4096, r.device = "cpu", r.isa = "avx2";
  r.injection = line.injection, r.layer = line.layer;
  r.method = line.method, r.budget = Budget::parse(line.budget);
  r.documents = line.documents, r.seeds = 1, r.tokens = 100;
  r.bytes = {.kv = 20, .meta = 5, .full = 100};
  r.of(eval::damage("kl_mean")) = {line.kl, 0.9 * line.kl, 1.1 * line.kl};
  r.of(eval::damage("nll_diff")) = {line.kl / 2, 0, line.kl};
  r.of(eval::damage("top1")) = {0.5, 0.4, 0.6};
  r.nll_verdict = eval::Difference::worse;
  r.metrics[replay::Metric::rel_err] = line.error;
  r.metrics[replay::Metric::recall] = line.recall;
  r.drift = 2 * line.error, r.residual = line.error;
  return r;
}

inline report::CsvTable csv_of_lines(const std::vector<EvalLine>& lines, const std::string& file = "e.csv") {
  std::vector<eval::EvalRecord> records;
  for (const EvalLine& line : lines) records.push_back(made_record(line));
  return report::parse_csv(report::csv_of(report::eval_columns(), records), file);
}

/// Three methods, of which recall orders all pairs as KL does, and the relative error one of three; two documents.
inline std::vector<EvalLine> three_methods() {
  std::vector<EvalLine> lines;
  for (const char* document : {"all", "text-0", "text-1"}) {
    lines.push_back({.method = "sink", .document = document, .kl = 3, .error = 0.2, .recall = 0.1});
    lines.push_back({.method = "h2o", .document = document, .kl = 2, .error = 0.1, .recall = 0.2});
    lines.push_back({.method = "snapkv", .document = document, .kl = 1, .error = 0.3, .recall = 0.3});
  }
  return lines;
}

/// Five methods with a KL of 1 to 5, which recall orders, and the relative error but for one pair; two documents.
inline std::vector<EvalLine> five_methods() {
  std::vector<EvalLine> lines;
  for (const char* document : {"all", "text-0", "text-1"}) {
    double kl = 0;
    for (const char* method : {"sink", "h2o", "snapkv", "cam", "uniform"}) {
      ++kl;
      const double error = kl == 1 ? 0.2 : kl == 2 ? 0.1 : kl / 10;
      lines.push_back({.method = method, .document = document, .kl = kl, .error = error, .recall = 1 - kl / 10});
    }
  }
  return lines;
}

inline std::string markdown_of(const std::vector<report::CsvTable>& tables) {
  return report::markdown(report::make_report(tables, {}));
}

}  // namespace kvbench::report_test
