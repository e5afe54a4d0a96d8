// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/replay/sections.hpp>

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
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
  if (count == of) return count == 1 ? ", its only layer" : fmt::format(", all {} layers", count);
  std::string out = of > 0 ? fmt::format(", {} of {} layers", count, of) : fmt::format(", {} layers", count);
  if (of == 0 && count == 1) out.pop_back();
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

/// A row of the table of methods.
struct MethodRow {
  const ReplayRow* row;
  std::string name, part;
  TableCell standing;
};

/// One row per configuration with results, budget by budget in ascending order of the error.
std::vector<MethodRow> method_rows(const std::vector<Series>& all, const std::vector<Budget>& budgets,
                                   const std::string& part) {
  const std::map<Budget, double> lowest = lowest_errors(all);
  std::vector<MethodRow> out;
  for (const Budget& budget : budgets) {
    const auto first = static_cast<std::ptrdiff_t>(out.size());
    const double least = lowest.contains(budget) ? lowest.at(budget) : NAN;
    for (const Series& series : all) {
      for (const ReplayRow* r : series.rows) {
        if (r->ok() && r->budget == budget) out.push_back({r, series.name(), part, standing(series, *r, least)});
      }
    }
    std::ranges::stable_sort(out.begin() + first, out.end(), {},
                             [](const MethodRow& m) { return std::pair(m.row->is_outside(), error_of(*m.row)); });
  }
  return out;
}

TableCell error_cell(const MethodRow& m) {
  TableCell cell = number_cell(m.row->error);
  cell.text = mark_of(*m.row) + cell.text;
  return cell;
}

TableCell interval_cell(const MethodRow& m) {
  const ReplayRow& r = *m.row;
  if (std::isnan(r.error_lo)) return r.figure().is_of_heads() ? "too few queries" : "";
  if (r.is_outside()) return "cannot be predicted";
  return r.estimable() ? fmt::format("{} to {}", three_digits(r.error_lo), three_digits(r.error_hi)) : "not estimable";
}

/// Without empty columns. The ratios are those of geometric means where it has these. `one_budget`: which the title
/// states.
DocTable method_table(const std::string& title, replay::FigureNumber ranking, const std::vector<MethodRow>& rows,
                      bool one_budget = false) {
  const auto number = [](auto of) { return [of](const MethodRow& m) { return number_cell(std::invoke(of, *m.row)); }; };
  const auto budget = [=](const MethodRow& m) {
    return one_budget ? TableCell() : TableCell(m.row->budget.text(), Tone::plain, number_text(m.row->share));
  };
  const bool geometric = std::ranges::any_of(rows, [](const MethodRow& m) { return !std::isnan(m.row->geomean); });
  return compact(
      filled<MethodRow>({.title = title, .sortable = true},
                        {{{"method"}, &MethodRow::name},
                         {{"trace"}, &MethodRow::part},
                         {{"budget", true}, budget},
                         {{std::string(figure_of(ranking).quantity), true}, error_cell},
                         {{"95 % interval", true}, interval_cell},
                         {{"median", true, false, true}, number(&ReplayRow::median)},
                         {{"bytes held / full", true}, number(&ReplayRow::held)},
                         {{"bytes read / full", true, false, true}, number(&ReplayRow::read)},
                         {{"time, s", true, false, true}, number(&ReplayRow::seconds)},
                         {{"recall", true, false, true}, number(&ReplayRow::recall)},
                         {{"geometric mean", true}, number(&ReplayRow::geomean)},
                         {{geometric ? "times the best (geometric)" : "times the best", true}, &MethodRow::standing}},
                        rows));
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
  using Average = compare::TextSummary;
  return compact(filled<Average>(
      {.title =
           fmt::format("Averages over texts: geometric mean of {}{}", figure.quantities,
                       intervals ? ", with the 95 % interval for another text" : " (too few texts for an interval)"),
       .sortable = true},
      {{{"method"}, [](const Average& t) { return t.params.empty() ? t.method : t.method + " " + t.params; }},
       {{"budget", true}, &Average::budget},
       {{"texts", true}, &Average::texts},
       {{std::string(figure.quantity), true},
        [](const Average& t) {
          return TableCell(mark_of(figure_of(t.figure), t.error) + three_digits(t.error), Tone::plain,
                           sort_key(t.error));
        }},
       {{"95 % interval", true},
        [](const Average& t) {
          if (std::isnan(t.interval.lo)) return std::string();
          return fmt::format("{} to {}", three_digits(t.interval.lo), three_digits(t.interval.hi));
        }},
       {{"mean rank", true}, [](const Average& t) { return number_cell(t.mean_rank); }},
       {{"wins", true}, &Average::wins}},
      summaries));
}

/// One row per group of similar reasons.
DocTable reasons(const std::vector<const replay::Record*>& rows, bool traces, const char* title) {
  const auto joined = [](auto list) {
    return [list](const ReasonGroup& group) { return fmt::format("{}", fmt::join(group.*list, ", ")); };
  };
  const auto status = [](const ReasonGroup& group) {
    return TableCell(group.status == replay::Status::ok ? "" : std::string(name_of(group.status)),
                     group.status == replay::Status::failed ? Tone::bad : Tone::plain);
  };
  const auto of_traces = [=](const ReasonGroup& group) { return traces ? joined(&ReasonGroup::traces)(group) : ""; };
  return compact(filled<ReasonGroup>({.title = title, .screen = true},
                                     {{{"methods", false, true}, joined(&ReasonGroup::methods)},
                                      {{"budgets"}, joined(&ReasonGroup::budgets)},
                                      {{"layers"}, joined(&ReasonGroup::layers)},
                                      {{"prompts"}, joined(&ReasonGroup::prompts)},
                                      {{"traces"}, of_traces},
                                      {{"rows", true}, &ReasonGroup::rows},
                                      {{"status"}, status},
                                      {{"reason", false, true}, &ReasonGroup::reason}},
                                     reason_groups(rows)));
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

/// The blocks of a part that are shown at once, and those that are folded.
struct PartBlocks {
  std::vector<Block> shown, figures, details;
  std::vector<MethodRow> rows;  ///< at all budgets
};

/// ", 2 texts (genesis, code)", ", text genesis"; "" where no row is of one text.
std::string texts_of(const ReplayPart& part) {
  DistinctTexts prompts;
  std::vector<std::string> names;
  for (const auto* rows : {&part.overall, &part.texts}) {
    for (const ReplayRow& r : *rows) {
      if (!r.over_prompts() && prompts.add(r.prompt) && !r.prompt_name.empty()) names.push_back(r.prompt_name);
    }
  }
  const std::size_t count = prompts.list().size();
  const bool named = count > 0 && names.size() == count;
  if (count < 2) return named ? ", text " + names.front() : "";
  return fmt::format(", {} texts{}", count, named ? " (" + listed_up_to(names) + ")" : "");
}

/// What files of single figures say of all of them: "MODEL; smollm2-135m.h5, 2 texts (genesis, code), 1024 tokens,
/// 5 of 30 layers; decode"
std::string source_of(const ReplaySection& section, const ReplayPart& part) {
  Distinct<double> tokens;
  for (const ReplayRow& r : part.overall) {
    if (r.ok()) tokens.add(r.context_tokens);
  }
  const std::string lengths = tokens.list().empty() ? "" : fmt::format(", {} tokens", range_text(tokens.list()));
  return fmt::format("{}; {}{}{}{}; {}", part.model, name_of(part), texts_of(part), lengths, layers_text(part),
                     section.protocol);
}

/// `several`: its section has other parts.
PartBlocks blocks_of(const ReplaySection& section, const ReplayPart& part, const QueryFiles& files, bool several) {
  const std::string name = several ? name_of(part) : "", of_part = several ? ": " + name : "";
  const std::vector<Series> all = series_of(part);
  const std::vector<Budget> budgets = budgets_of(part);
  const Shown shown = shown_of(all, budgets);
  PartBlocks out;
  std::vector<Figure> figures = {cost_figure(shown.series, shown.budgets, of_part),
                                 error_figure(shown.series, shown.budgets, of_part)};
  if (std::optional<Figure> first = take_first_drawing(figures)) out.shown.emplace_back(*std::move(first));
  if (!budgets.empty()) {
    const Budget main = main_budgets(budgets).front();
    append_filled(out.shown, method_table(fmt::format("Methods at {}{}", budget_words(main), of_part), part.ranked_by,
                                          method_rows(all, {main}, ""), true));
  }
  out.rows = method_rows(all, budgets, name);
  append_filled(out.figures, AnswerBlock{scope_of(section, part), sentences_of(part, shown.budgets)});
  out.figures.emplace_back(Paragraph{introduction(section, part)});
  if (!shown.note.empty()) out.figures.emplace_back(Paragraph{shown.note});
  for (Figure& figure : figures) append_filled(out.figures, std::move(figure));
  append_filled(out.figures, budget_table(all, budgets, of_part));
  out.details = layer_figures(shown.series, shown.budgets);
  append(out.details, head_figures(part));
  append(out.details, query_figures(section, part, shown.series, files.raw));
  for (const trace::Reader* trace : files.traces)
    append(out.details, attention_figure(section, part, shown.series, files.raw, *trace));
  if (several && !out.details.empty()) out.details.insert(out.details.begin(), Paragraph{name});
  for (auto* blocks : {&out.shown, &out.figures, &out.details})
    name_source(*blocks, source_of(section, part), budget_words(budgets));
  return out;
}

Section section_of(const ReplaySection& section, const QueryFiles& files) {
  Section out{.title = heading_of(section)};
  std::vector<Block> figures, details, averages;
  std::vector<MethodRow> rows;
  const bool several = section.parts.size() > 1;
  bool more = several;  // rows than those that are shown at once
  for (const ReplayPart& part : section.parts) {
    const std::vector<Budget> budgets = budgets_of(part);
    AnswerBlock answer{scope_of(section, part), sentences_of(part, main_budgets(budgets))};
    if (!answer.sentences.empty()) out.answers.push_back(std::move(answer));
    PartBlocks blocks = blocks_of(section, part, files, several);
    append(out.blocks, std::move(blocks.shown));
    append(figures, std::move(blocks.figures));
    append(details, std::move(blocks.details));
    std::ranges::move(blocks.rows, std::back_inserter(rows));
    more |= budgets.size() > 1;
  }
  if (more) {
    const replay::FigureNumber ranking = section.parts.front().ranked_by;
    append_filled(figures,
                  method_table(fmt::format("Methods: {} and cost", figure_of(ranking).quantity), ranking, rows));
  }
  append_folded(out.blocks, "All budgets, costs and notes", std::move(figures));
  append_folded(out.blocks, "By layer, head and query", std::move(details));
  append_filled(averages, text_averages(section));
  append_folded(out.blocks, "By text", std::move(averages));
  append_folded(out.blocks, "Rows without results, and notes", reason_tables(section));
  return out;
}

}  // namespace

std::vector<Section> sections_of(std::span<const ReplaySection> replays, const QueryFiles& files) {
  std::vector<Section> out;
  for (const ReplaySection& section : replays) out.push_back(section_of(section, files));
  return out;
}

}  // namespace kvbench::report
