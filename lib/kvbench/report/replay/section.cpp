// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/replay/sections.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include <fmt/ranges.h>

#include <kvbench/compare/configuration_name.hpp>
#include <kvbench/compare/texts.hpp>
#include <kvbench/core/ordered_map.hpp>
#include <kvbench/report/replay/answer.hpp>
#include <kvbench/report/replay/figures.hpp>
#include <kvbench/report/replay/ranked_figure.hpp>
#include <kvbench/report/replay/reason_groups.hpp>
#include <kvbench/report/replay/series.hpp>
#include <kvbench/report/text/sentences.hpp>
#include <kvbench/report/text/text.hpp>

namespace kvbench::report {
namespace {

/// "5 of 30 layers (0, 1, 4, 15, 29)"
std::string layers_text(const ReplayPart& part) {
  DistinctTexts distinct;
  for (const ReplayRow& r : part.layers) distinct.add(fmt::format("{}", *r.layer));
  const std::vector<std::string>& layers = distinct.list();
  double count = static_cast<double>(layers.size()), of = 0;
  for (const ReplayRow& r : part.overall) {
    if (!r.ok() || r.model_layers == 0) continue;
    count = std::max(count, static_cast<double>(r.layer_count));
    of = std::max(of, static_cast<double>(r.model_layers));
  }
  if (count == 0) return "";
  if (count == of) return fmt::format(", all {} layers", count);
  std::string out = of > 0 ? fmt::format(", {} of {} layers", count, of) : fmt::format(", {} layers", count);
  return layers.empty() ? out : out + fmt::format(" ({})", fmt::join(layers, ", "));
}

std::string scope_of(const ReplaySection& section, const ReplayPart& part) {
  const std::string run = section.run.empty() ? "" : "Run " + section.run + ": ";
  return fmt::format("{}{} on {}{}", run, section.protocol, name_of(part), layers_text(part));
}

/// What the rows at these budgets say: the answers and what they cost first.
std::vector<std::string> sentences_of(const ReplayPart& part, const std::vector<Budget>& budgets) {
  std::vector<replay::Record> records;
  const std::set<Budget> at(budgets.begin(), budgets.end());
  for (const ReplayRow& r : part.overall) {
    if (at.contains(r.budget)) records.push_back(r);
  }
  std::vector<replay::Record> of_texts = records;
  for (const ReplayRow& r : part.texts) {
    if (at.contains(r.budget)) of_texts.push_back(r);
  }
  return answers_of(records, of_texts, Notes::last);
}

std::string heading_of(const ReplaySection& s) {
  DistinctTexts traces;
  for (const ReplayPart& part : s.parts) traces.add(name_of(part));
  return fmt::format("{}: {}, {}", s.run.empty() ? "Replay" : "Run " + s.run, fmt::join(traces.list(), "; "),
                     s.protocol);
}

std::string introduction(const ReplaySection& section, const ReplayPart& part) {
  std::string out = fmt::format("Attention of {} ({}, sha256 {}{}), protocol {}, computed on {}.", part.model,
                                name_of(part), part.sha256, layers_text(part), section.protocol, section.device);
  if (part.finer > 0) out += fmt::format(" {} rows per query or single prompt are not shown.", part.finer);
  return out;
}

/// The lowest error of each budget, or the lowest one of the figure that ranks the rows; references excepted.
std::map<Budget, double> lowest_errors(const std::vector<Series>& all) {
  std::map<Budget, double> lowest;
  for (const Series& series : all) {
    for (const ReplayRow* r : series.rows) {
      if (series.reference || !r->ok() || r->is_outside() || std::isnan(r->error)) continue;
      const auto [known, fresh] = lowest.emplace(r->budget, error_of(*r));
      if (!fresh) known->second = std::min(known->second, error_of(*r));
    }
  }
  return lowest;
}

/// As scripts read it.
std::string sort_key(double value) { return std::isinf(value) ? "Infinity" : number_text(value); }

/// "best", "tied, 1.02", "1.4"; sorted by the ratio of the errors.
TableCell standing(const Series& series, const ReplayRow& r, double lowest) {
  if (series.reference) return {"reference", Tone::dim};
  if (r.is_outside()) return {"measure", Tone::dim, sort_key(INFINITY)};
  const double ratio = std::isnan(r.ratio_best) || r.tied == std::nullopt ? error_of(r) / lowest : r.ratio_best;
  if (std::isnan(ratio)) return "";
  const std::string key = sort_key(ratio);
  if (error_of(r) == lowest) return {"best", Tone::plain, key};
  if (lowest == 0) return {"", Tone::plain, key};
  const char* tie = r.tied == true ? "tied, " : r.tied == false ? "" : "not tested, ";
  return {fmt::format("{}{:.3g}", tie, ratio), Tone::plain, key};
}

TableCell number_cell(double value) { return {three_digits(value), Tone::plain, sort_key(value)}; }

void add_row(const Series& series, const ReplayRow& r, const std::string& part, double lowest, DocTable& table) {
  const std::string interval = fmt::format("{} to {}", three_digits(r.error_lo), three_digits(r.error_hi));
  std::vector<TableCell> cells = {series.name(),
                                  part,
                                  {r.budget.text(), Tone::plain, number_text(r.share)},
                                  number_cell(r.error),
                                  std::isnan(r.error_lo) ? (r.figure().is_of_heads() ? "too few queries" : "")
                                  : r.is_outside()       ? "cannot be predicted"
                                  : r.estimable()        ? interval
                                                         : "not estimable"};
  cells[3].text = mark_of(r) + cells[3].text;
  for (const double value : {r.median, r.held(), r.read(), r.seconds, r.recall, r.geomean})
    cells.push_back(number_cell(value));
  cells.push_back(standing(series, r, lowest));
  table.rows.push_back(std::move(cells));
}

/// One row per configuration with results, budget by budget in ascending order of the error.
void add_rows(const std::vector<Series>& all, const std::vector<Budget>& budgets, const std::string& part,
              DocTable& table) {
  const std::map<Budget, double> lowest = lowest_errors(all);
  std::map<Budget, std::vector<std::pair<const Series*, const ReplayRow*>>> by_budget;
  for (const Series& series : all) {
    for (const ReplayRow* r : series.rows) {
      if (r->ok()) by_budget[r->budget].emplace_back(&series, r);
    }
  }
  for (const Budget& budget : budgets) {
    auto& rows = by_budget[budget];
    std::ranges::stable_sort(
        rows, {}, [](const auto& row) { return std::pair(row.second->is_outside(), error_of(*row.second)); });
    for (const auto& [series, r] : rows)
      add_row(*series, *r, part, lowest.contains(budget) ? lowest.at(budget) : NAN, table);
  }
}

constexpr std::size_t geometric_column = 10;

DocTable method_table(replay::FigureNumber ranking) {
  const std::string quantity(figure_of(ranking).quantity);
  return {.title = fmt::format("Methods: {} and cost", quantity),
          .columns = {{"method"},
                      {"trace"},
                      {"budget", true},
                      {quantity, true},
                      {"95 % interval", true},
                      {"median", true, false, true},
                      {"bytes held / full", true},
                      {"bytes read / full", true, false, true},
                      {"time, s", true, false, true},
                      {"recall", true, false, true},
                      {"geometric mean", true},
                      {"times the best", true}},
          .sortable = true};
}

/// The table of methods without empty columns, whose ratios are those of geometric means where it has these.
DocTable finished(DocTable table) {
  const auto has = [](const std::vector<TableCell>& row) { return !row[geometric_column].text.empty(); };
  if (std::ranges::any_of(table.rows, has)) table.columns.back().title = "times the best (geometric)";
  return compact(std::move(table));
}

/// Averages over texts: the prompts of the traces, the smallest budget first.
DocTable text_averages(const ReplaySection& section) {
  std::vector<replay::Record> records;
  Distinct<Budget> budgets;
  for (const ReplayPart& part : section.parts) {
    std::ranges::for_each(budgets_of(part), [&](const Budget& budget) { budgets.add(budget); });
    for (const auto* rows : {&part.overall, &part.texts}) {
      for (const ReplayRow& r : *rows) records.push_back(r);
    }
  }
  std::vector<compare::TextSummary> summaries = compare::summarize_texts(records);
  std::ranges::stable_sort(summaries, {}, [&](const compare::TextSummary& t) {
    return std::ranges::find(budgets.list(), t.budget) - budgets.list().begin();
  });
  const bool intervals =
      std::ranges::any_of(summaries, [](const compare::TextSummary& t) { return !std::isnan(t.interval.lo); });
  const replay::RankingFigure& figure =
      figure_of(summaries.empty() ? replay::FigureNumber{} : summaries.front().figure);
  DocTable table{.title = fmt::format(
                     "Averages over texts: geometric mean of {}{}", figure.quantities,
                     intervals ? ", with the 95 % interval for another text" : " (too few texts for an interval)"),
                 .columns = {{"method"},
                             {"budget", true},
                             {"texts", true},
                             {std::string(figure.quantity), true},
                             {"95 % interval", true},
                             {"mean rank", true},
                             {"wins", true}},
                 .sortable = true};
  for (const compare::TextSummary& t : summaries) {
    const bool enough = !std::isnan(t.interval.lo);
    table.rows.push_back(
        {t.params.empty() ? t.method : t.method + " " + t.params,
         t.budget.text(),
         fmt::format("{}", t.texts),
         {mark_of(figure_of(t.figure), t.error) + three_digits(t.error), Tone::plain, sort_key(t.error)},
         enough ? fmt::format("{} to {}", three_digits(t.interval.lo), three_digits(t.interval.hi)) : "",
         number_cell(t.mean_rank),
         fmt::format("{}", t.wins)});
  }
  return compact(std::move(table));
}

/// One row per group of similar reasons.
DocTable reasons(const std::vector<const replay::Record*>& rows, bool traces, const char* title) {
  DocTable table{.title = title,
                 .columns = {{"methods", false, true},
                             {"budgets"},
                             {"layers"},
                             {"prompts"},
                             {"traces"},
                             {"rows", true},
                             {"status"},
                             {"reason", false, true}},
                 .screen = true};
  for (const ReasonGroup& group : reason_groups(rows)) {
    const bool ok = group.status == replay::Status::ok;
    table.rows.push_back({fmt::format("{}", fmt::join(group.methods, ", ")),
                          fmt::format("{}", fmt::join(group.budgets, ", ")),
                          fmt::format("{}", fmt::join(group.layers, ", ")),
                          fmt::format("{}", fmt::join(group.prompts, ", ")),
                          traces ? fmt::format("{}", fmt::join(group.traces, ", ")) : "",
                          fmt::format("{}", group.rows),
                          {ok ? "" : std::string(name_of(group.status)),
                           group.status == replay::Status::failed ? Tone::bad : Tone::plain},
                          group.reason});
  }
  return compact(std::move(table));
}

/// Reasons of rows without results and notes on the others.
std::vector<Block> reason_tables(const ReplaySection& section) {
  std::vector<const replay::Record*> broken, notes;
  DistinctTexts traces;
  for (const ReplayPart& part : section.parts) {
    traces.add(part.sha256);
    for (const ReplayRow& r : part.broken) broken.push_back(&r);
    for (const ReplayRow& r : part.overall) {
      if (r.ok() && !r.reason.empty()) notes.push_back(&r);
    }
  }
  const bool several = traces.list().size() > 1;
  std::vector<Block> blocks;
  if (!notes.empty()) blocks.emplace_back(reasons(notes, several, "Notes on rows with results"));
  if (!broken.empty()) blocks.emplace_back(reasons(broken, several, "Rows without results"));
  return blocks;
}

/// The blocks that are shown at once, and the figures and tables that are folded, of all parts of a section.
struct SectionBlocks {
  std::vector<Block> shown, figures, details;
  DocTable all;
  bool several = false;  ///< parts or budgets, of which `shown` has one each
};

/// ", 2 texts (genesis, code)", ", text genesis"; "" where no row is of one text.
std::string texts_of(const ReplayPart& part) {
  DistinctTexts prompts;
  std::vector<std::string> names;
  for (const auto* rows : {&part.overall, &part.texts}) {
    for (const ReplayRow& r : *rows) {
      if (r.prompt != "all" && prompts.add(r.prompt) && !r.prompt_name.empty()) names.push_back(r.prompt_name);
    }
  }
  const std::size_t count = prompts.list().size();
  const bool named = count > 0 && names.size() == count;
  if (count < 2) return named ? ", text " + names.front() : "";
  return fmt::format(", {} texts{}", count, named ? " (" + listed_up_to(names) + ")" : "");
}

/// What files of single figures say of all of them: "MODEL; smollm2-135m.h5, 2 texts (genesis, code), 1024 tokens,
/// 5 of 30 layers; decode; 12.5, 25 % of the memory."
std::string source_of(const ReplaySection& section, const ReplayPart& part, const std::vector<Budget>& budgets) {
  Distinct<double> tokens;
  for (const ReplayRow& r : part.overall) {
    if (r.ok()) tokens.add(r.context_tokens);
  }
  const std::string lengths = tokens.list().empty() ? "" : fmt::format(", {} tokens", range_text(tokens.list()));
  return fmt::format("{}; {}{}{}{}; {}; {}.", part.model, name_of(part), texts_of(part), lengths, layers_text(part),
                     section.protocol, budget_words(budgets));
}

/// Puts the source before what the figures from `first` on say alone.
void name_source(std::vector<Block>& blocks, std::size_t first, const std::string& source) {
  for (std::size_t i = first; i < blocks.size(); ++i) {
    if (auto* const figure = std::get_if<Figure>(&blocks[i])) figure->alone = source + " " + figure->alone;
  }
}

void add_part(const ReplaySection& section, const ReplayPart& part, const QueryFiles& files,
              const std::vector<std::string>& said, SectionBlocks& into) {
  const bool several = section.parts.size() > 1;
  const std::string name = several ? name_of(part) : "", of_part = several ? ": " + name : "";
  const std::vector<Series> all = series_of(part);
  const std::vector<Budget> budgets = budgets_of(part);
  const Shown shown = shown_of(all, budgets);
  const std::string source = source_of(section, part, budgets);
  const std::size_t firsts[] = {into.shown.size(), into.figures.size(), into.details.size()};
  std::vector<Figure> figures = {cost_figure(shown.series, shown.budgets, of_part),
                                 error_figure(shown.series, shown.budgets, of_part)};
  if (std::optional<Figure> first = take_first_drawing(figures)) into.shown.emplace_back(*std::move(first));
  if (const std::vector<Budget> main = main_budgets(budgets); !main.empty()) {
    DocTable table = method_table(part.ranked_by);
    table.title = fmt::format("Methods at {}{}", budget_words(main.front()), of_part);
    add_rows(all, {main.front()}, "", table);
    for (auto& row : table.rows) row[2] = "";  // the budget, which the title states
    append_filled(into.shown, finished(std::move(table)));
  }
  append_filled(into.figures, without({scope_of(section, part), sentences_of(part, shown.budgets)}, said));
  into.figures.emplace_back(Paragraph{introduction(section, part)});
  if (!shown.note.empty()) into.figures.emplace_back(Paragraph{shown.note});
  for (Figure& figure : figures) append_filled(into.figures, std::move(figure));
  append_filled(into.figures, budget_table(all, budgets, of_part));
  add_rows(all, budgets, name, into.all);
  into.several |= several || budgets.size() > 1;
  if (several) into.details.emplace_back(Paragraph{name});
  const std::size_t before = into.details.size();
  append(into.details, layer_figures(shown.series, shown.budgets));
  append(into.details, head_figures(part));
  append(into.details, query_figures(section, part, shown.series, files.raw));
  for (const trace::Reader* trace : files.traces)
    append(into.details, attention_figure(section, part, shown.series, files.raw, *trace));
  if (several && into.details.size() == before) into.details.pop_back();
  name_source(into.shown, firsts[0], source), name_source(into.figures, firsts[1], source);
  name_source(into.details, firsts[2], source);
}

}  // namespace

std::vector<AnswerBlock> main_answers(const ReplaySection& section) {
  std::vector<AnswerBlock> answers;
  for (const ReplayPart& part : section.parts) {
    AnswerBlock answer{scope_of(section, part), sentences_of(part, main_budgets(budgets_of(part)))};
    if (!answer.sentences.empty()) answers.push_back(std::move(answer));
  }
  return answers;
}

std::vector<Block> replay_blocks(const ReplaySection& section, const QueryFiles& files,
                                 const std::vector<std::string>& said) {
  SectionBlocks gathered;
  gathered.all = method_table(section.parts.empty() ? replay::FigureNumber{} : section.parts.front().ranked_by);
  for (const ReplayPart& part : section.parts) add_part(section, part, files, said, gathered);
  std::vector<Block> blocks = {Heading{2, heading_of(section)}};
  append(blocks, std::move(gathered.shown));
  if (gathered.several) append_filled(gathered.figures, finished(std::move(gathered.all)));
  append_folded(blocks, "All budgets, costs and notes", std::move(gathered.figures));
  append_folded(blocks, "By layer, head and query", std::move(gathered.details));
  std::vector<Block> averages;
  append_filled(averages, text_averages(section));
  append_folded(blocks, "By text", std::move(averages));
  append_folded(blocks, "Rows without results, and notes", reason_tables(section));
  return blocks;
}

}  // namespace kvbench::report
