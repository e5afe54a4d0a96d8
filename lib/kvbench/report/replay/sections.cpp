// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/replay/sections.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include <kvbench/compare/comparison.hpp>
#include <kvbench/compare/configuration_name.hpp>
#include <kvbench/core/error.hpp>
#include <kvbench/core/ordered_map.hpp>
#include <kvbench/methods/registry.hpp>
#include <kvbench/report/columns/tables.hpp>
#include <kvbench/report/drawing/marks.hpp>
#include <kvbench/report/read/rows.hpp>
#include <kvbench/report/replay/answer.hpp>
#include <kvbench/report/replay/ranked_figure.hpp>
#include <kvbench/report/text/text.hpp>

namespace kvbench::report {
namespace {

ReplayRow replay_row(const RowReader<replay::Record>& read, const CsvTable& table, const CsvRow& row) {
  ReplayRow r{read(row), &table};
  r.label = compare::label_of({r.method, r.params, {}});
  r.seconds = r.compress_s + r.attend_s;
  r.recall = r.of(replay::Metric::recall).mean;
  if (r.budget == Budget()) table.cell(row, "budget").refuse("a budget");
  const double whole = r.budget.is_bytes() ? r.bytes.full : r.context_tokens;
  r.share = r.budget.is_share() ? r.budget.share() : static_cast<double>(r.budget.resolve(0, 1)) / whole;
  return r;
}

replay::Record record_at(const RowPlace& place) {
  return RowReader<replay::Record>(*place.first, record_columns())(*place.second);
}

/// The figures by which rows of several files differ.
auto figures_of(const replay::Record& r) {
  const replay::Summary& error = r.of(replay::Metric::rel_err);
  return std::tuple(r.status, r.reason, number_text(error.mean), number_text(error.lo), number_text(error.hi),
                    number_text(r.bytes.of(CostKind::memory)), number_text(r.bytes.read));
}

/// Finds rows that several files have: with equal figures they are one row, with other figures rows of different
/// methods.
class Duplicates {
 public:
  /// Throws Error where a file has a row twice.
  explicit Duplicates(std::span<const CsvTable* const> tables) {
    FirstRows<replay::Record> first(record_columns());
    for (const CsvTable* table : tables) {
      for (const CsvRow& row : table->rows) {
        const RowPlace known = first.add(*table, row);
        if (known.second == &row) continue;
        repeated_.insert(&row);
        const replay::Record r = record_at({table, &row});
        if (figures_of(r) != figures_of(record_at(known))) different_.insert(method_of(r));
      }
    }
  }

  /// Whether several files have other figures of the row's method.
  bool differs(const replay::Record& r) const { return !different_.empty() && different_.contains(method_of(r)); }
  /// Whether the row, `r` as it was read, repeats that of another file.
  bool repeats(const CsvRow& row, const replay::Record& r) const { return repeated_.contains(&row) && !differs(r); }

 private:
  using Method =
      std::tuple<std::string, replay::Protocol, std::string, std::string, std::string, std::string, std::string>;
  static Method method_of(const replay::Record& r) {
    return {r.run, r.protocol, r.device, r.trace, r.sha256, r.method, r.params};
  }

  std::set<const CsvRow*> repeated_;
  std::set<Method> different_;
};

/// Tells the methods of several files apart by the names of the files.
void name_file(ReplayRow& row) {
  row.of_file = true;
  row.params += fmt::format("{}from {}", row.params.empty() ? "" : ";", row.table->name);
}

/// The tests of a CSV are against the best row of its own file. They count where that is the best row of all files.
void keep_valid_tests(std::vector<ReplayRow>& rows) {
  std::map<Budget, const ReplayRow*> best;  // of each budget
  for (const ReplayRow& r : rows) {
    if (!is_method(r) || r.is_outside()) continue;
    const ReplayRow*& known = best[r.budget];
    if (known == nullptr || error_of(r) < error_of(*known)) known = &r;
  }
  for (ReplayRow& r : rows) {
    const ReplayRow* first = best[r.budget];
    const bool same = first != nullptr && r.best == first->label && (!first->of_file || first->table == r.table);
    if (!same) forget_test(r);
  }
}

/// The rows of a trace, before the prompts that are shown are selected.
struct Gathered {
  ReplayPart part;
  std::vector<ReplayRow> rows;
};

/// Puts a row where the part shows it; `own`: the row is of the part's prompt or of all prompts.
void add_row(const ReplayRow& r, bool own, ReplayPart& part) {
  const bool head = r.query_head.has_value();
  if (!r.ok() && !head) part.broken.push_back(r);
  if (head) part.heads.push_back(r);
  if (own && !head) (r.layer ? part.layers : part.overall).push_back(r);
  if (!own && !head && !r.layer) part.texts.push_back(r);
  part.finer += !own && !head;
}

/// Makes a figure the one that ranks the row and that drawings and tables show.
void show(ReplayRow& r, replay::FigureNumber ranking) {
  rank_by(r, ranking);
  const replay::RankingFigure& figure = r.figure();
  const Interval interval = figure.interval(r);
  r.error = figure.mean(r), r.error_lo = interval.lo, r.error_hi = interval.hi;
  if (figure.is_of_heads()) r.median = r.of(*figure.metric).p50;
}

/// All rows over all layers of a part are ranked by one figure: that of their tables, where these have the same.
/// Query heads have errors alone.
void choose_figure(ReplayPart& part, replay::FigureNumber wanted) {
  constexpr replay::FigureNumber by_error = replay::figure_named("rel_err"), as_in_tables{};
  Distinct<replay::FigureNumber> figures;
  for (const ReplayRow& r : part.overall) figures.add(r.ranked_by);
  const bool one = figures.list().size() == 1;
  part.ranked_by = wanted != as_in_tables ? wanted : one ? figures.list().front() : by_error;
  for (auto* rows : {&part.overall, &part.layers, &part.texts}) {
    for (ReplayRow& r : *rows) show(r, part.ranked_by);
  }
  const auto lacks = [](const ReplayRow& r) { return std::isnan(r.error); };
  if (wanted != as_in_tables && std::ranges::all_of(part.overall, lacks))
    throw Error("`rank_by` is {}, and no row of {} has it; leave it out, or replay a trace that has what it takes",
                name_of(wanted), part.trace);
  for (auto* rows : {&part.heads, &part.broken}) {
    for (ReplayRow& r : *rows) show(r, by_error);
  }
}

/// A part shows the rows over all prompts; without such rows there is one part per prompt.
void finish(const Gathered& gathered, replay::FigureNumber figure, std::vector<ReplayPart>& out) {
  OrderedMap<std::string, ReplayPart> parts;
  for (const ReplayRow& r : gathered.rows) {
    if (!r.query_head && parts.find(r.prompt) == nullptr) parts[r.prompt] = gathered.part;
  }
  const bool several = parts.items().size() > 1, joined = parts.find("all") != nullptr;
  for (const ReplayRow& r : gathered.rows) {
    ReplayPart* const part = parts.find(joined ? "all" : r.prompt);
    if (part != nullptr) add_row(r, !joined || r.over_prompts(), *part);
  }
  for (auto& [prompt, part] : parts.items()) {
    if (joined && prompt != "all") continue;
    if (several) part.prompt = prompt;
    choose_figure(part, figure);
    keep_valid_tests(part.overall);
    out.push_back(std::move(part));
  }
}

}  // namespace

std::vector<ReplaySection> replay_sections(std::span<const CsvTable* const> tables, replay::FigureNumber figure) {
  const Duplicates duplicates(tables);
  using SectionKey = std::tuple<std::string, replay::Protocol, std::string>;  // run, protocol, device
  OrderedMap<SectionKey, OrderedMap<std::pair<std::string, std::string>, Gathered>> sections;
  for (const CsvTable* table : tables) {
    const RowReader<replay::Record> read(*table, record_columns()), identity(*table, record_columns(), true);
    for (const CsvRow& row : table->rows) {
      const replay::Record about = identity(row);
      if (duplicates.repeats(row, about)) continue;
      Gathered& into = sections[{about.run, about.protocol, about.device}][{about.trace, about.sha256}];
      if (about.query) {
        ++into.part.finer;
        continue;
      }
      const ReplayRow& r = into.rows.emplace_back(replay_row(read, *table, row));
      into.part.trace = r.trace, into.part.sha256 = r.sha256, into.part.model = r.model;
      if (duplicates.differs(r)) name_file(into.rows.back());
    }
  }
  std::vector<ReplaySection> out;
  for (const auto& [key, traces] : sections.items()) {
    const auto& [run, protocol, device] = key;
    out.push_back({.run = run, .protocol = std::string(name_of(protocol)), .device = device});
    for (const auto& [trace, gathered] : traces.items()) finish(gathered, figure, out.back().parts);
  }
  return out;
}

std::string name_of(const ReplayPart& part) {
  if (part.prompt.empty()) return part.trace;
  return part.trace + (part.prompt == "all" ? ", all prompts" : ", prompt " + part.prompt);
}

namespace {

constexpr int most_shown_series = 100;
constexpr std::size_t most_shown_budgets = 12;

constexpr int style_step = 7;  // between styles of one colour

double lowest_error(const Series& series) {
  double lowest = INFINITY;
  for (const ReplayRow* r : series.rows) lowest = !r->is_outside() && r->error < lowest ? r->error : lowest;
  return lowest;
}

/// Styles and ranks.
void set_styles(std::vector<Series>& all, const OwnStyles& own) {
  std::set<const ReplayRow*> best;
  for (const auto cost : {&replay::Costs::held, &replay::Costs::read}) {
    for (const ReplayRow* r : frontier_of(all, cost)) best.insert(r);
  }
  std::vector<Series*> order;
  for (Series& series : all) {
    if (!series.reference) order.push_back(&series);
  }
  std::ranges::stable_sort(order, {}, [&](const Series* s) {
    const bool first =
        std::ranges::any_of(s->rows, [&](const ReplayRow* r) { return best.contains(r) || r->tied == true; });
    return std::pair(!first, lowest_error(*s));
  });
  std::map<int, int> members;  // of each colour
  for (std::size_t i = 0; i < order.size(); ++i) {
    const int colour = marks::family_style(order[i]->kind);
    order[i]->rank = static_cast<int>(i);
    const auto known = own.find(order[i]->name());
    order[i]->style = known != own.end() ? known->second : colour + style_step * members[colour]++;
  }
}

}  // namespace

std::vector<const ReplayRow*> frontier_of(const std::vector<Series>& all, double (replay::Costs::*cost)() const) {
  std::vector<const ReplayRow*> rows;
  for (const Series& series : all) {
    if (series.reference) continue;
    for (const ReplayRow* r : series.rows) {
      if (r->ok() && r->estimable() && std::isfinite(r->error) && std::isfinite((r->*cost)())) rows.push_back(r);
    }
  }
  std::ranges::stable_sort(rows, {}, cost);
  std::vector<double> lowest;         // error of the rows up to this one
  std::map<double, double> cheapest;  // cost by error
  for (const ReplayRow* r : rows) {
    lowest.push_back(lowest.empty() ? r->error : std::min(lowest.back(), r->error));
    cheapest.emplace(r->error, (r->*cost)());
  }
  const std::vector<const ReplayRow*> by_cost = rows;
  const auto beaten = [&](const ReplayRow* r) {
    const auto count =
        std::ranges::upper_bound(by_cost, compare::equal_cost * (r->*cost)(), {}, cost) - by_cost.begin();
    return (count > 0 && lowest[static_cast<std::size_t>(count) - 1] < r->error) ||
           cheapest.at(r->error) < (r->*cost)();
  };
  std::erase_if(rows, beaten);
  return rows;
}

const replay::RankingFigure& figure_of(const std::vector<Series>& all) {
  for (const Series& series : all) {
    for (const auto* rows : {&series.rows, &series.layers}) {
      if (!rows->empty()) return rows->front()->figure();
    }
  }
  return replay::figure_of({});
}

std::vector<Series> series_of(const ReplayPart& part) {
  OrderedMap<std::pair<std::string, std::string>, Series> by_name;
  const auto find = [&](const ReplayRow& r) -> Series& {
    Series& series = by_name[{r.method, r.params}];
    if (!series.method.empty()) return series;
    series = {.method = r.method,
              .params = r.params,
              .kind = std::string(methods::family_of(r.method)),
              .reference = compare::is_baseline(r.method),
              .style = 0,
              .rank = 0};
    return series;
  };
  for (const ReplayRow& r : part.overall) find(r).rows.push_back(&r);
  for (const ReplayRow& r : part.layers) find(r).layers.push_back(&r);
  std::vector<Series> all;
  for (auto& [name, series] : by_name.items()) all.push_back(std::move(series));
  for (Series& series : all) {
    std::ranges::stable_sort(series.rows, {}, &ReplayRow::share);
    if (std::ranges::any_of(series.rows, &ReplayRow::calibrated_on_itself)) series.reference = true;
  }
  set_styles(all, part.own);
  return all;
}

Shown shown_of(const std::vector<Series>& all, const std::vector<Budget>& budgets) {
  Shown out;
  const std::size_t count = std::min(budgets.size(), most_shown_budgets);
  for (std::size_t i = 0; i < count; ++i) out.budgets.push_back(budgets[i * budgets.size() / count]);
  const std::set<Budget> at(out.budgets.begin(), out.budgets.end());
  const auto hidden = [&](const ReplayRow* r) { return !at.contains(r->budget); };
  for (const Series& series : all) {
    if (!series.reference && series.rank >= most_shown_series) continue;
    out.series.push_back(series);
    std::erase_if(out.series.back().rows, hidden);
    std::erase_if(out.series.back().layers, hidden);
  }
  if (out.series.size() < all.size()) {
    out.note = fmt::format("Figures show {} of {} methods and parameters, those with the lowest errors.",
                           out.series.size(), all.size());
  }
  if (count < budgets.size())
    out.note +=
        fmt::format("{}Figures and answers show {} of {} budgets.", out.note.empty() ? "" : " ", count, budgets.size());
  if (!out.note.empty()) out.note += " The tables have all rows.";
  return out;
}

std::vector<Budget> budgets_of(const ReplayPart& part) {
  OrderedMap<Budget, double> shares;
  const auto add = [&](const ReplayRow& r) {
    double& share = shares[r.budget];
    if (share == 0 || std::isnan(share)) share = r.share;
  };
  std::ranges::for_each(part.overall, add);
  std::ranges::for_each(part.layers, add);
  std::vector<std::pair<double, Budget>> budgets;
  for (const auto& [budget, share] : shares.items()) budgets.emplace_back(share, budget);
  std::ranges::stable_sort(budgets, [](const auto& a, const auto& b) {
    return std::isnan(a.first) ? false : std::isnan(b.first) || a.first < b.first;
  });
  std::vector<Budget> out;
  for (const auto& [share, budget] : budgets) out.push_back(budget);
  return out;
}

}  // namespace kvbench::report
