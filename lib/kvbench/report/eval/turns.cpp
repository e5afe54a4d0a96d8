// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/eval/turns.hpp>

#include <algorithm>
#include <cmath>
#include <set>

#include <kvbench/core/ordered_map.hpp>
#include <kvbench/report/document/writers.hpp>
#include <kvbench/report/eval/answer.hpp>
#include <kvbench/report/eval/section.hpp>
#include <kvbench/report/text/sentences.hpp>
#include <kvbench/report/text/text.hpp>

namespace kvbench::report {
namespace {

using Turns = std::span<const ConfigurationTurns>;

/// KL by turn and conversation, of the rows that compressed the most layers.
std::map<Index, eval::KlByDocument> kl_by_turn(std::span<const EvalRow* const> rows) {
  Index most = 0;
  for (const EvalRow* row : rows) most = std::max(most, row->common_layers());
  std::map<Index, eval::KlByDocument> out;
  for (const EvalRow* row : rows) {
    if (row->common_layers() == most) out[row->turn][row->document + " " + row->document_sha256] = kl_of(*row).mean;
  }
  return out;
}

/// How `b` stands to `a`: two lengths that are a doubling apart, whose factor is their ratio.
eval::Growth ratio_of(const eval::KlByDocument& a, const eval::KlByDocument& b) {
  return eval::growth_of({{1, a}, {2, b}});
}

ConfigurationTurns summary_of(const EvalRow& row, const std::map<Index, eval::KlByDocument>& kl) {
  ConfigurationTurns out{.row = &row};
  std::size_t most = 0;
  for (const auto& [turn, documents] : kl) {
    out.kl[turn] = eval::geometric_mean(documents);
    most = std::max(most, documents.size());
  }
  for (const auto& [turn, documents] : kl) {
    if (documents.size() < most) continue;
    if (out.first == 0) out.first = turn;
    out.last = turn;
  }
  out.change = out.first == out.last ? eval::Growth{} : ratio_of(kl.at(out.first), kl.at(out.last));
  return out;
}

std::string ratio_text(const eval::Growth& growth) {
  return std::isnan(growth.factor.mean) ? "-" : interval_text(growth.factor.mean, growth.factor.lo, growth.factor.hi);
}

/// "compressed at every turn"
std::string when_text(const EvalRow& row) {
  const eval::Compressions rule = row.settings.protocol.compressions.value_or(eval::Compressions());
  constexpr std::string_view words[] = {"once", "at every turn", "anew at every turn", "after tokens"};
  if (rule.when == eval::Compressions::When::tokens) return fmt::format("compressed every {} tokens", rule.tokens);
  return fmt::format("compressed {}", name_in(words, rule.when));
}

std::string reason_of(const eval::Growth& growth) {
  if (!growth.at_floor.empty()) return fmt::format("KL is below {:g} nats, where rounding may decide", eval::kl_floor);
  return growth.documents == 1 ? "one conversation, and an interval takes two" : "no conversation has two scored turns";
}

std::string sentence_of(const ConfigurationTurns& of) {
  const std::string what =
      fmt::format("{} at {}, {}", of.row->name(), budget_words(of.row->budget), when_text(*of.row));
  if (std::isnan(of.change.factor.lo))  // one conversation has a factor
    return fmt::format("{}: cannot tell whether KL grows over the turns: {}.", what, reason_of(of.change));
  std::string out =
      fmt::format("{}: KL {}: in turn {} it is {} times that of turn {}, {} conversations", what,
                  of.change.verdict == eval::Growing::cannot_tell ? "may grow or shrink" : name_of(of.change.verdict),
                  of.last, ratio_text(of.change), of.first, of.change.documents);
  if (!std::isnan(of.again.factor.mean))
    out += fmt::format("; {} times that of a cache compressed anew at this turn", ratio_text(of.again));
  return out + ".";
}

/// The turns that tables show: the first and the last one, and some between.
std::vector<Index> shown_turns(Turns turns) {
  std::set<Index> all;
  for (const ConfigurationTurns& of : turns)
    for (const auto& [turn, kl] : of.kl) all.insert(turn);
  const std::vector<Index> list(all.begin(), all.end());
  const std::size_t most = std::min<std::size_t>(list.size(), 4);
  std::vector<Index> out;
  for (std::size_t i = 0; i < most; ++i) out.push_back(most == 1 ? list[0] : list[i * (list.size() - 1) / (most - 1)]);
  return out;
}

Figure turn_figure(Turns turns, const EvalSection& section) {
  std::vector<KlCurve> curves;
  for (const ConfigurationTurns& of : turns) {
    if (of.row->method == "exact" && of.row->params.empty()) continue;  // it would take the axis down to rounding
    KlCurve& curve = curves.emplace_back(KlCurve{of.row, when_text(*of.row), {}, {}});
    for (const auto& [turn, kl] : of.kl) curve.at.push_back(turn), curve.kl.push_back(kl);
  }
  return kl_figure({.title = "Damage over the turns",
                    .caption = "Geometric mean KL over the conversations that have a turn; bars: its 95 % interval. "
                               "The ratios of the table are paired by conversation, and more exact than the bars."},
                   curves, {.title = "turn"}, section);
}

std::string meaning_of_turns() {
  return fmt::format(
      "KL: geometric mean over conversations, of the answer of a turn. Last/first: KL of the last turn over that of "
      "the "
      "first one, paired by conversation, with Student's 95 % interval. 'grows', 'shrinks': it excludes 1; 'does not "
      "grow': its upper end is at most {:g}. Answers differ in how hard they are: last/anew compares the same answer "
      "with a cache that was compressed once, from the exact one.",
      eval::growth_margin);
}

/// What sections have in common that differ in when caches are compressed alone.
std::string setting_without_rule(const EvalSection& s) {
  EvalSection same;
  same.model = s.model, same.question = s.question, same.settings = s.settings;
  same.settings.protocol = {};
  const EvalRow& row = s.turns.front();
  return fmt::format("{} {} {} {} {}", s.text, row.sha256, s.device, s.inject_scale, setting_of(same, s.context));
}

}  // namespace

std::vector<ConfigurationTurns> turns_of(std::span<const EvalRow* const> rows) {
  using Key = std::pair<std::string, eval::EvalProtocol>;  // configuration, rule
  const eval::EvalProtocol anew_at_each{.compressions = eval::Compressions{eval::Compressions::When::anew}};
  OrderedMap<Key, std::vector<const EvalRow*>> configurations;
  for (const EvalRow* row : rows) {
    if (row->ok() && row->turn > 0 && !row->layer && !row->over_documents() && row->injection.mode == eval::Inject::all)
      configurations[{row->name() + '\n' + row->budget.text(), row->settings.protocol}].push_back(row);
  }
  std::map<Key, std::map<Index, eval::KlByDocument>> kl;
  for (const auto& [key, of] : configurations.items()) kl[key] = kl_by_turn(of);
  std::vector<ConfigurationTurns> out;
  for (const auto& [key, of] : configurations.items()) {
    ConfigurationTurns& one = out.emplace_back(summary_of(*of.front(), kl[key]));
    const auto anew = kl.find({key.first, anew_at_each});
    if (anew == kl.end() || key.second == anew_at_each || !anew->second.contains(one.last)) continue;
    one.again = ratio_of(anew->second.at(one.last), kl[key].at(one.last));
  }
  return out;
}

std::vector<std::string> turn_answers(Turns turns) {
  std::vector<std::string> out;
  for (const ConfigurationTurns& of : turns) out.push_back(sentence_of(of));
  return out;
}

DocTable turn_table(Turns turns) {
  std::vector<RowColumn<ConfigurationTurns>> columns = {
      {{"method"}, [](const ConfigurationTurns& of) { return of.row->name(); }},
      {{"budget", true}, [](const ConfigurationTurns& of) { return TableCell(of.row->budget); }},
      {{"compressed"}, [](const ConfigurationTurns& of) { return of.row->settings.protocol.compressions->text(); }}};
  for (const Index turn : shown_turns(turns))
    columns.push_back({{fmt::format("KL, turn {}", turn), true}, [turn](const ConfigurationTurns& of) {
                         return of.kl.contains(turn) ? short_number(of.kl.at(turn).mean) : "-";
                       }});
  columns.push_back({{"last/first", true}, [](const ConfigurationTurns& of) { return ratio_text(of.change); }});
  if (std::ranges::any_of(turns, [](const auto& of) { return !std::isnan(of.again.factor.mean); }))
    columns.push_back({{"last/anew", true}, [](const ConfigurationTurns& of) { return ratio_text(of.again); }});
  columns.push_back(
      {{"verdict"}, [](const ConfigurationTurns& of) { return TableCell(std::string(name_of(of.change.verdict))); }});
  return filled<ConfigurationTurns>({.title = "Damage over the turns", .sortable = true}, columns, turns);
}

std::vector<Block> brief_turns(Turns turns, const std::string& rest) {
  return brief_table(turn_table(turns),
                     fmt::format("KL of the last turn over that of the first; 'does not grow': at most {:g} times.",
                                 eval::growth_margin),
                     rest);
}

std::vector<Section> turn_sections(std::span<const EvalSection> evaluations) {
  OrderedMap<std::string, std::vector<const EvalSection*>> settings;
  for (const EvalSection& section : evaluations) {
    if (!section.turns.empty()) settings[setting_without_rule(section)].push_back(&section);
  }
  std::vector<Section> out;
  for (const auto& [setting, sections] : settings.items()) {
    RowsOfText rows;
    for (const EvalSection* section : sections)
      for (const EvalRow& row : section->turns) rows.push_back(&row);
    const std::vector<ConfigurationTurns> turns = turns_of(rows);
    if (turns.empty()) continue;
    const EvalSection& first = *sections.front();
    const std::string scope = fmt::format("Turns of {} on {}, question {}", first.model, first.text, first.question);
    AnswerBlock answer{scope, turn_answers(turns)};
    Section& one = out.emplace_back(Section{.title = scope, .answers = {answer}});
    append_filled(one.blocks, turn_figure(turns, first));
    append_filled(one.blocks, turn_table(turns));
    one.blocks.emplace_back(Paragraph{meaning_of_turns()});
    append_filled(one.blocks, std::move(answer));
    name_source(one.blocks, scope, "", "Bars: 95 % intervals over conversations.");
  }
  return out;
}

}  // namespace kvbench::report
