// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/replay/table.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>
#include <vector>

#include <fmt/format.h>

#include <kvbench/compare/configuration_name.hpp>
#include <kvbench/compare/texts.hpp>
#include <kvbench/report/replay/answer.hpp>
#include <kvbench/report/replay/reason_groups.hpp>
#include <kvbench/report/text/text.hpp>

namespace kvbench::report {
namespace {

/// A column of the short tables.
struct Brief {
  const char* header;
  std::string (*text)(const replay::Record&);
};

std::string interval_of(const replay::Record& r) {
  const replay::Summary& s = r.of(replay::metric("rel_err"));
  if (!s.mean_is_estimable()) return "not estimable";
  return !std::isnan(s.mean) && std::isnan(s.lo) ? "too few queries" : short_interval(s.lo, s.hi);
}

/// "1.4 (1.2..1.6)": with the interval for all layers and texts like these.
std::string times_best(const replay::Record& r) {
  if (std::isnan(r.ratio_best)) return "-";
  if (r.best == compare::label_of({r.method, r.params, {}})) return "1";
  return fmt::format("{} ({})", short_number(r.ratio_best),
                     short_interval(r.ratio_best_interval.lo, r.ratio_best_interval.hi));
}

constexpr Brief brief_columns[] = {
    {"method",
     [](const replay::Record& r) {
       const std::string name = r.params.empty() ? r.method : fmt::format("{} ({})", r.method, r.params);
       return r.refit == replay::Refit::none ? name : fmt::format("{}: {} weights", name, name_of(r.refit));
     }},
    {"budget", [](const replay::Record& r) { return r.budget; }},
    {"kept", [](const replay::Record& r) { return short_number(r.kept_tokens); }},
    {"bytes/full", [](const replay::Record& r) { return short_number(r.bytes.of(CostKind::memory) / r.bytes.full); }},
    {"read/full", [](const replay::Record& r) { return short_number(r.bytes.of(CostKind::read) / r.bytes.full); }},
    {"rel_err", [](const replay::Record& r) { return short_number(r.of(replay::metric("rel_err")).mean); }},
    {"95% interval", interval_of},
    {"times the best", times_best},
    {"median", [](const replay::Record& r) { return short_number(r.of(replay::metric("rel_err")).p50); }},
    {"p99", [](const replay::Record& r) { return short_number(r.of(replay::metric("rel_err")).p99); }},
    {"recall", [](const replay::Record& r) { return short_number(r.of(replay::metric("recall")).mean); }},
    {"mass", [](const replay::Record& r) { return short_number(r.of(replay::metric("mass_recall")).mean); }},
    {"kept mass", [](const replay::Record& r) { return short_number(r.of(replay::metric("kept_mass")).mean); }},
    {"ceiling", [](const replay::Record& r) { return short_number(r.of(replay::metric("mass_ceiling")).mean); }},
};

/// Whether `~` is shown after the error: the row is tied with the best and is not the best itself.
bool has_tie(const replay::Record& r) {
  return r.tied == true && r.best != compare::label_of({r.method, r.params, {}});
}
constexpr const char* tie_note =
    "~ not distinguishable from the best row of its budget (Holm at 5 %; columns best, ratio_best, tested_over, "
    "tied)\n";
constexpr const char* hindsight_note =
    "own weights, fitted weights: measured on the last half of the evaluated queries; fitted to the first half\n";
constexpr std::size_t error_column = 5;

bool of_several_traces(std::span<const replay::Record> records) {
  return std::ranges::any_of(records, [&](const replay::Record& r) { return r.sha256 != records.front().sha256; });
}

/// Rows of the short table, header first. Rows that are not ok show their status and reason instead of numbers.
/// `traces`: rows begin with the trace.
TextRows brief_records(std::span<const replay::Record> records, bool traces, bool layers) {
  TextRows rows(1);
  for (const Brief& column : brief_columns) rows[0].emplace_back(column.header);
  const bool ties = std::ranges::any_of(records, has_tie);
  if (ties) rows[0][error_column] += ' ';
  if (layers) rows[0].insert(rows[0].begin() + 1, "layer");
  if (traces) rows[0].insert(rows[0].begin(), "trace");
  for (const replay::Record& r : records) {
    std::vector<std::string> cells;
    for (const Brief& column : brief_columns) {
      const bool shown = r.status == replay::Status::ok || cells.size() < 2;
      cells.push_back(shown ? column.text(r) : "");
    }
    if (r.status != replay::Status::ok) cells[2] = fmt::format("{}: {}", name_of(r.status), r.reason);
    if (ties && r.status == replay::Status::ok) cells[error_column] += has_tie(r) ? '~' : ' ';
    if (layers) cells.insert(cells.begin() + 1, r.layer ? fmt::format("{}", *r.layer) : "all");
    if (traces) cells.insert(cells.begin(), r.trace);
    rows.push_back(std::move(cells));
  }
  return rows;
}

/// Rows over all layers, and over all prompts of a trace where it has several.
std::vector<replay::Record> rows_over_layers(std::span<const replay::Record> records) {
  std::set<std::string> several;
  for (const replay::Record& r : records) {
    if (r.prompt == "all") several.insert(r.sha256);
  }
  std::vector<replay::Record> shown;
  std::ranges::copy_if(records, std::back_inserter(shown), [&](const replay::Record& r) {
    return !r.layer && (r.prompt == "all" || !several.contains(r.sha256));
  });
  return shown;
}

}  // namespace

std::string markdown_table(std::span<const replay::Record> records) {
  const auto is_left = of_several_traces(records) ? [](std::size_t column) { return column < 3; }
                                                  : [](std::size_t column) { return column < 2; };
  std::string out = markdown_rows(brief_records(records, of_several_traces(records), true), is_left);
  if (std::ranges::any_of(records, has_tie)) out += fmt::format("\n{}", tie_note);
  if (const std::string layers = layers_of(rows_over_layers(records)); !layers.empty())
    out += fmt::format("\n{}\n", layers);
  return out;
}

std::string terminal_table(std::span<const replay::Record> records) {
  const std::vector<replay::Record> all = rows_over_layers(records);
  std::vector<replay::Record> shown;
  std::map<std::string, std::size_t> traces, budgets;  // numbers in order of appearance
  for (const replay::Record& r : all) {
    traces.emplace(r.sha256, traces.size()), budgets.emplace(r.budget, budgets.size());
    if (r.status == replay::Status::ok) shown.push_back(r);
  }
  std::ranges::stable_sort(shown, {}, [&](const replay::Record& r) {
    const bool hindsight = r.refit != replay::Refit::none;  // not ranked: pairs stay in their order
    const double error = hindsight ? 0 : r.of(replay::metric("rel_err")).mean;
    return std::tuple(hindsight, traces.at(r.sha256), budgets.at(r.budget), error);
  });
  const std::string reasons = reasons_text(all);
  if (shown.empty()) return reasons;
  const std::string out = aligned_rows(
      brief_records(shown, traces.size() > 1, false), traces.size() > 1
                                                          ? [](std::size_t column) { return column < 2; }
                                                          : [](std::size_t column) { return column < 1; });
  const bool hindsight =
      std::ranges::any_of(shown, [](const replay::Record& r) { return r.refit != replay::Refit::none; });
  return out + (std::ranges::any_of(shown, has_tie) ? tie_note : "") + (hindsight ? hindsight_note : "") +
         (reasons.empty() ? "" : "\n" + reasons);
}

std::string text_table(std::span<const replay::Record> records) {
  std::vector<compare::TextSummary> texts = compare::summarize_texts(records);
  std::erase_if(texts, [](const compare::TextSummary& t) { return t.texts < 3; });
  if (texts.empty()) return "";
  TextRows rows = {{"over texts", "budget", "texts", "rel_err", "95% interval", "mean rank", "wins"}};
  for (const compare::TextSummary& t : texts) {
    rows.push_back({compare::label_of({t.method, t.params, {}}), t.budget, fmt::format("{}", t.texts),
                    short_number(t.error), short_interval(t.interval.lo, t.interval.hi), short_number(t.mean_rank),
                    fmt::format("{}", t.wins)});
  }
  return aligned_rows(rows, [](std::size_t column) { return column == 0; });
}

std::string terminal_summary(std::span<const replay::Record> records) {
  const std::vector<replay::Record> shown = rows_over_layers(records);
  std::string out;
  for (const std::string& sentence : answers_of(shown, records)) out += sentence + '\n';
  if (const std::string layers = layers_of(shown); !layers.empty()) out += layers + '\n';
  if (!out.empty()) out += '\n';
  out += terminal_table(records);
  const std::string texts = text_table(records);
  return texts.empty() ? out : out + '\n' + texts;
}

}  // namespace kvbench::report
