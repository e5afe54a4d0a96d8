// SPDX-License-Identifier: Apache-2.0
// Sorts the rows of CSV files into the sections of a report.
// A section of a replay or sweep: one figure and the table of one budget; folded: all others, the figures by layer,
// head and query, averages over texts, and the reasons of rows without results. Series: a method with parameters over
// its budgets, as figures and tables show it.
#pragma once

#include <cmath>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <kvbench/compare/query_results.hpp>
#include <kvbench/replay/records/figures.hpp>
#include <kvbench/report/document/document.hpp>
#include <kvbench/report/drawing/marks.hpp>
#include <kvbench/report/read/csv.hpp>
#include <kvbench/trace/reader.hpp>

namespace kvbench::report {

/// A row of a replay or sweep over all queries: what its columns say, and what figures make of it. `best` and `tied`
/// are empty where there was no test against the best row of all files.
struct ReplayRow : replay::Record {
  const CsvTable* table = nullptr;
  std::string label;     ///< as the column `best` names it
  bool of_file = false;  ///< other files have other figures of its method; `params` then ends in the name of the file
  double share = NAN;    ///< the requested budget as a share of the context, or of the cost of the full cache
  double seconds = NAN;  ///< of compression and of answering
  double error = NAN, error_lo = NAN, error_hi = NAN;  ///< the figure that ranks the row, and its interval
  double median = NAN, recall = NAN;                   ///< median: of a figure of heads

  /// Whether the figure says something of the row, which a few huge values do not decide.
  bool estimable() const { return !is_outside() && figure().is_estimable(*this); }
  bool is_best() const { return best == label; }
};

/// The rows of a section on one trace (over all prompts; of one prompt, where no row is over all prompts).
struct ReplayPart {
  std::string trace, sha256, model, prompt;  ///< prompt: empty where there is one
  std::vector<ReplayRow> overall;            ///< over all layers
  std::vector<ReplayRow> layers;             ///< per layer
  std::vector<ReplayRow> heads;              ///< per query head and seed, of any prompt
  std::vector<ReplayRow> texts;              ///< over all layers of single prompts, where `overall` is over all prompts
  std::vector<ReplayRow> broken;             ///< rows over heads that are not ok, of any prompt
  replay::FigureNumber ranked_by{};          ///< the figure of `overall`, `layers` and `texts`
  OwnStyles own;                             ///< of the report
  std::size_t finer = 0;                     ///< number of rows per query or prompt, which are not shown
};

/// The rows of one run, protocol and device, whatever the files, traces and budgets.
struct ReplaySection {
  std::string run, protocol, device;
  std::vector<ReplayPart> parts = {};
};

/// Sections and their parts in the order of the files. Of rows with equal figures in several files the first is taken.
/// `figure`: what ranks the rows; 0: what ranked them in the tables.
std::vector<ReplaySection> replay_sections(std::span<const CsvTable* const> tables, replay::FigureNumber figure = {});

/// The part's name among the parts of its section: trace and prompt.
std::string name_of(const ReplayPart& part);

/// Files beside the tables, which add figures of single queries.
struct QueryFiles {
  std::vector<const compare::QueryResults*> raw;  ///< raw results, opened for rel_err
  std::vector<const trace::Reader*> traces;       ///< with raw results: add maps of attention and kept tokens
};

/// The sections of a page. They answer at one budget of each kind; the answers and what they cost first.
std::vector<Section> sections_of(std::span<const ReplaySection> replays, const QueryFiles& files);

struct Series {
  std::string method, params;
  std::string kind;        ///< methods::family_of()
  bool reference = false;  ///< compare::is_baseline(), or calibrated on itself: not ranked
  int style = 0;           ///< in all figures: the colour is that of the family; marks::own_style()
  int rank = 0;            ///< of those that are no references: on a frontier first, by the lowest error
  std::vector<const ReplayRow*> rows = {};  ///< over all layers, smallest budget first, including rows that are not ok
  std::vector<const ReplayRow*> layers = {};  ///< per layer

  std::string name() const { return params.empty() ? method : method + " " + params; }
};

/// The figure that all rows of the series show (ReplayPart::ranked_by).
const replay::RankingFigure& figure_of(const std::vector<Series>& all);

/// The series of a part, in the order of the CSV.
std::vector<Series> series_of(const ReplayPart& part);

/// What figures show of the series and budgets of a part.
struct Shown {
  /// at most 100 and the references, those on a frontier and with the lowest errors; at `budgets` only
  std::vector<Series> series;
  std::vector<Budget> budgets;  ///< at most 12, evenly spaced
  std::string note;             ///< a sentence that says what is left out; "" where nothing is
};
Shown shown_of(const std::vector<Series>& all, const std::vector<Budget>& budgets);

/// Budgets as given, smallest first.
std::vector<Budget> budgets_of(const ReplayPart& part);

/// The rows that no other row beats by a lower error at no more than equal_cost times its cost, by ascending cost.
/// References and rows whose mean is not estimable are not compared.
std::vector<const ReplayRow*> frontier_of(const std::vector<Series>& all, double (replay::Costs::*cost)() const);

}  // namespace kvbench::report
