// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/replay/table.hpp>

#include <algorithm>
#include <cmath>
#include <tuple>

#include <fmt/ranges.h>

#include <kvbench/compare/configuration_name.hpp>
#include <kvbench/core/ordered_map.hpp>
#include <kvbench/core/utf8.hpp>
#include <kvbench/methods/registry.hpp>
#include <kvbench/report/document/writers.hpp>
#include <kvbench/report/replay/answer.hpp>
#include <kvbench/report/replay/ranked_figure.hpp>
#include <kvbench/report/replay/reason_groups.hpp>
#include <kvbench/report/text/sentences.hpp>
#include <kvbench/report/text/text.hpp>

namespace kvbench::report {
namespace {

constexpr std::size_t most_best = 5, most_answers = 9;
constexpr std::size_t place = 24;  ///< bytes of the name of a trace or run

/// Texts of more bytes end in "..": of places, whose rows stand together. Names of methods stay whole.
std::string cut(const std::string& text, std::size_t most) {
  if (text.size() <= most) return text;
  std::size_t end = 0;
  for (std::size_t next = 0; next <= most - 2; next += std::max<std::size_t>(1, utf8_character(text.substr(next))))
    end = next;
  return text.substr(0, end) + "..";
}

/// times_best(), or the ratio of the mean errors alone. The means of rows without a geometric one have no ratio to it.
std::string times(const replay::Record& r, const replay::Record& best) {
  if (&r == &best) return "1";
  if (!std::isnan(r.ratio_best)) return times_best(r);
  return std::isnan(best.geomean) ? short_number(error_of(r) / error_of(best)) : "-";
}

/// The first rows of a list. `ranked`: in ascending order of the error, from the best of a budget on.
DocTable first_rows(std::span<const replay::Record* const> rows, bool ranked) {
  const replay::RankingFigure& figure = rows.front()->figure();
  const bool predicted = figure.is_prediction();
  const bool over_texts = !std::isnan(rows.front()->geomean);  // ratios are then those of geometric means
  const bool geometric = over_texts && !predicted;
  const auto is_tied = [](const replay::Record* r) { return r->tied == true && r->best != label(*r); };
  const bool ties = std::ranges::any_of(rows, is_tied);
  const auto shown = rows.first(std::min(rows.size(), most_best));
  const auto is_measured = [](const replay::Record* r) { return !std::isnan(r->kl.measured); };
  const bool measured = predicted && std::ranges::any_of(shown, is_measured);
  const auto elsewhere = [&](const replay::Record* r) { return r->budget != rows.front()->budget; };
  const bool budgets = std::ranges::any_of(rows, elsewhere);
  const auto on_another = [&](const replay::Record* r) { return r->trace != rows.front()->trace; };
  const bool traces = std::ranges::any_of(rows, on_another);
  DocTable table{.columns = {{"method"},
                             {"trace"},
                             {"budget"},
                             {"family"},
                             {std::string(geometric ? "geometric mean" : figure.heading()), true},
                             {predicted ? "95% interval" : "", true},
                             {measured ? "measured" : "", true},
                             {over_texts && predicted ? "ratio (geometric)" : "times the best"},
                             {measured ? "held" : "bytes/full", true},
                             {measured ? "read" : "read/full", true}}};
  for (const replay::Record* r : shown) {
    const double error = geometric ? r->geomean : figure.mean(*r);
    const std::string text = std::isnan(error) ? "-" : geometric ? short_number(error) : figure_text(r->figure(), *r);
    const Interval interval = r->figure().interval(*r);
    table.rows.push_back({label(*r), traces ? cut(r->trace, place) : "", budgets ? r->budget.text() : "",
                          std::string(methods::family_of(r->method)),
                          text + (is_tied(r) ? "~"
                                  : ties     ? " "
                                             : ""),
                          predicted ? short_interval(interval.lo, interval.hi) : "",
                          measured && is_measured(r) ? short_number(r->kl.measured) : "",
                          ranked ? times(*r, *rows.front()) : "",
                          short_number(r->bytes.of(CostKind::memory) / r->bytes.full),
                          short_number(r->bytes.of(CostKind::read) / r->bytes.full)});
  }
  return compact(std::move(table));
}

/// As many whole names as fit, and the number of the others.
std::string names_of(const std::vector<evidence::Mark>& marks) {
  constexpr std::size_t width = 30;
  std::vector<std::string> names;
  std::size_t fit = 0, used = 0;
  for (const evidence::Mark& mark : marks) {
    names.push_back(mark.name);
    used += mark.name.size() + 2;
    if (used <= width) ++fit;
  }
  return names.empty() ? "" : listed_up_to(names, std::max<std::size_t>(fit, 1));
}

/// Those that no test tells from the best.
std::vector<evidence::Mark> not_told(const evidence::Standing& standing) {
  std::vector<evidence::Mark> out = standing.tied;
  out.insert(out.end(), standing.untested.begin(), standing.untested.end());
  return out;
}

/// A method of the reader's own: how many times the best it is, or why that is not known.
struct OwnMethod {
  std::string name, standing;
};

/// Those of an answer, where another column does not say it.
std::vector<OwnMethod> own_methods(const BudgetAnswer& answer, std::span<const replay::Record> rows) {
  std::vector<OwnMethod> out;
  const auto said = [&](const std::string& name) {
    const evidence::Mark* next = answer.standing.next();
    return answer.standing.best.name == name || (next != nullptr && next->name == name);
  };
  for (const replay::Record& r : rows) {
    const bool here = r.budget == answer.budget && (answer.run.empty() || r.run == answer.run) &&
                      (answer.trace.empty() || r.trace == answer.trace);
    const std::string name = label(r);
    if (!here || methods::family_of(r.method) != "own" || said(name)) continue;
    const auto all = answer.standing.ranked();
    const auto mark = std::ranges::find(all, name, [](const evidence::Mark* m) { return m->name; });
    out.push_back({name, mark != all.end()                ? "x " + short_number((*mark)->ratio)
                         : r.is_outside()                 ? "outside"
                         : r.status == replay::Status::ok ? "not ranked"
                                                          : std::string(name_of(r.status))});
  }
  return out;
}

/// "./mine.py:far: x 14.1, py:near: failed"
std::string own_text(const BudgetAnswer& answer, std::span<const replay::Record> rows) {
  std::vector<std::string> out;
  for (const OwnMethod& own : own_methods(answer, rows)) out.push_back(fmt::format("{}: {}", own.name, own.standing));
  return fmt::format("{}", fmt::join(out, ", "));
}

/// Run, trace and budget of an answer.
std::string place_of(const BudgetAnswer& answer) {
  std::string at = answer.run;
  for (const std::string& part : {answer.trace, answer.budget.text()})
    at += (at.empty() || part.empty() ? "" : " ") + part;
  return at;
}

/// "Your methods: ./mine.py:far at 25%mem x 14.1, at 50%mem x 9; py:near at 25%mem failed."
std::string own_sentence(std::span<const BudgetAnswer> answers, std::span<const replay::Record> rows) {
  OrderedMap<std::string, std::vector<std::string>> methods;
  for (const BudgetAnswer& a : answers) {
    for (const OwnMethod& own : own_methods(a, rows))
      methods[own.name].push_back(fmt::format("at {} {}", place_of(a), own.standing));
  }
  std::vector<std::string> parts;
  for (const auto& [name, standings] : methods.items())
    parts.push_back(fmt::format("{} {}", name, fmt::join(standings, ", ")));
  return fmt::format("Your methods: {}.", fmt::join(parts, "; "));
}

/// One line per budget, trace and run; `own`: with the reader's own methods.
DocTable answer_rows(std::span<const BudgetAnswer> answers, std::span<const replay::Record> rows, bool own) {
  DocTable table{
      .columns = {{"run"}, {"trace"}, {"budget"}, {""}, {"cannot be told from it"}, {"next"}, {"your methods"}}};
  Distinct<std::string_view> quantities;
  for (const BudgetAnswer& a : answers) quantities.add(a.ranked.front()->figure().quantity);
  table.columns[3].title = fmt::format("lowest {}", fmt::join(quantities.list(), " or "));
  for (const BudgetAnswer& a : answers) {
    const evidence::Mark &first = a.standing.best, *other = a.standing.next();
    table.rows.push_back({cut(a.run, place), cut(a.trace, place), a.budget.text(),
                          fmt::format("{}{} ({}{})", a.standing.is_undecided() ? "cannot tell: " : "", first.name,
                                      mark_of(*a.ranked.front()), short_number(first.mean)),
                          names_of(not_told(a.standing)),
                          other == nullptr ? "" : fmt::format("{}: x {}", other->name, short_number(other->ratio)),
                          own ? own_text(a, rows) : ""});
  }
  return compact(std::move(table));
}

bool fits(const DocTable& table) {
  const Block block = table;
  const std::string text = terminal_text({&block, 1});
  std::size_t longest = 0;
  for (std::size_t begin = 0, end = 0; (end = text.find('\n', begin)) != text.npos; begin = end + 1)
    longest = std::max(longest, end - begin);
  return longest <= terminal_width;
}

/// Where nothing was tested of several budgets, traces and runs, and what a test needs; "" if all were tested.
std::string untested_text(std::span<const BudgetAnswer> answers) {
  DistinctTexts places;
  for (const BudgetAnswer& a : answers) {
    if (!a.needs.empty()) places.add(place_of(a));
  }
  if (places.list().empty()) return "";
  const bool all = places.list().size() == answers.size();
  return fmt::format("Nothing was tested{}. {}", all ? "" : " at " + listed_up_to(places.list()), needs_of(answers));
}

/// What is not ranked, and beside the lines of several budgets, traces and runs why nothing was told.
std::string open_notes(std::span<const replay::Record> rows, std::span<const BudgetAnswer> answers) {
  DistinctTexts sentences, outside;
  if (answers.size() > 1) {  // one says it itself
    if (std::string text = untested_text(answers); !text.empty()) sentences.add(std::move(text));
    for (const BudgetAnswer& a : answers) {
      for (const replay::Record* r : a.outside) outside.add(label(*r));
    }
  }
  if (!outside.list().empty())
    sentences.add(fmt::format("Cannot be predicted at each of these budgets: {}.", listed_up_to(outside.list())));
  if (std::vector<std::string> names = calibrated_on_themselves(rows); !names.empty())
    sentences.add(fmt::format("Not ranked without --calibrate: {}.", listed_up_to(std::move(names))));
  return fmt::format("{}", fmt::join(sentences.list(), " "));
}

/// "Not shown: 17 rows with results, 20 infeasible, 1 skipped; ..."; "" where all rows are shown.
std::string rest_of(std::span<const replay::Record> rows, std::size_t shown, const std::string& rest) {
  std::vector<std::string> parts;
  const auto count = [&](replay::Status status) {
    return static_cast<std::size_t>(std::ranges::count(rows, status, &replay::Record::status));
  };
  if (const std::size_t ok = count(replay::Status::ok); ok > shown)
    parts.push_back(fmt::format("{} row{} with results", ok - shown, ok - shown == 1 ? "" : "s"));
  for (const replay::Status status : {replay::Status::infeasible, replay::Status::skipped, replay::Status::failed}) {
    if (const std::size_t without = count(status); without > 0)
      parts.push_back(fmt::format("{} {}", without, name_of(status)));
  }
  return parts.empty() ? "" : fmt::format("Not shown: {}; see {}.", fmt::join(parts, ", "), rest);
}

/// The table, and what its marks mean.
void append_with_notes(std::vector<Block>& blocks, DocTable table) {
  const std::vector<std::string> notes = notes_of(table);
  blocks.emplace_back(std::move(table));
  if (!notes.empty()) blocks.emplace_back(Paragraph{fmt::format("{}.", fmt::join(notes, "; "))});
}

/// The answers at several budgets, of several traces and runs. The reader's own methods are a sentence where their
/// column makes lines too long.
std::vector<Block> of_several(std::span<const BudgetAnswer> answers, std::span<const replay::Record> rows) {
  const auto shown = answers.first(std::min(answers.size(), most_answers));
  DocTable table = answer_rows(shown, rows, true);
  const bool apart = !fits(table) && table.columns.back().title == "your methods";
  std::vector<Block> blocks;
  append_with_notes(blocks, apart ? answer_rows(shown, rows, false) : std::move(table));
  if (apart) blocks.emplace_back(Paragraph{own_sentence(shown, rows)});
  return blocks;
}

/// The answer at one budget.
std::vector<Block> of_one_budget(const BudgetAnswer& answer, const std::string& notes) {
  std::vector<Block> blocks = {Paragraph{answer.brief + (notes.empty() ? "" : " " + notes)}};
  append_with_notes(blocks, first_rows(answer.ranked, true));
  return blocks;
}

/// Rows that nothing ranks, in ascending order of the error, references last; the reasons where there are none.
std::vector<Block> without_answer(std::span<const replay::Record> rows) {
  std::vector<const replay::Record*> ok;
  for (const replay::Record& r : rows) {
    if (r.status == replay::Status::ok) ok.push_back(&r);
  }
  std::ranges::stable_sort(
      ok, {}, [](const replay::Record* r) { return std::tuple(!is_method(*r), r->is_outside(), error_of(*r)); });
  std::vector<Block> blocks;
  if (!ok.empty()) {
    append_with_notes(blocks, first_rows(ok, false));
    return blocks;
  }
  for (const std::string& reason : reason_sentences(rows)) blocks.emplace_back(Paragraph{reason});
  return blocks;
}

}  // namespace

std::vector<Block> brief_summary(std::span<const replay::Record> records, const std::string& rest) {
  const std::vector<replay::Record> rows = rows_over_layers(records);
  const std::vector<BudgetAnswer> answers = budget_answers(rows);
  const std::string notes = open_notes(rows, answers);
  std::vector<Block> blocks;
  if (answers.size() == 1) {
    blocks = of_one_budget(answers.front(), notes);
  } else {
    blocks = answers.empty() ? without_answer(rows) : of_several(answers, rows);
    if (!notes.empty()) blocks.emplace_back(Paragraph{notes});
  }
  return shortened(std::move(blocks), [&](std::size_t shown) {
    std::vector<std::string> last;
    if (answers.size() == 1) last.push_back(family_note(answers.front().ranked, shown));
    last.push_back(rest_of(rows, shown, rest));
    return last;
  });
}

std::vector<Block> full_summary(std::span<const replay::Record> records) {
  const std::vector<replay::Record> shown = rows_over_layers(records);
  AnswerBlock answer{"", answers_of(shown, records)};
  if (const std::string layers = layers_of(shown); !layers.empty()) answer.sentences.push_back(layers);
  std::vector<Block> blocks;
  append_filled(blocks, std::move(answer));
  std::ranges::move(rows_by_error(records), std::back_inserter(blocks));
  if (std::optional<DocTable> texts = averages_over_texts(records)) blocks.emplace_back(*std::move(texts));
  return blocks;
}

}  // namespace kvbench::report
