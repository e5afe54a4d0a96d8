// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/report.hpp>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <set>
#include <span>

#include <fmt/format.h>

#include <kvbench/core/utf8.hpp>
#include <kvbench/core/version.hpp>
#include <kvbench/methods/registry.hpp>
#include <kvbench/report/claims/sections.hpp>
#include <kvbench/report/document/document.hpp>
#include <kvbench/report/eval/answer.hpp>
#include <kvbench/report/eval/figures.hpp>
#include <kvbench/report/eval/prediction.hpp>
#include <kvbench/report/eval/section.hpp>
#include <kvbench/report/read/csv.hpp>
#include <kvbench/report/read/table_kind.hpp>
#include <kvbench/report/replay/sections.hpp>
#include <kvbench/report/text/text.hpp>

namespace kvbench::report {
namespace {

/// "138 (132 ok, 6 skipped)"
std::string count_text(const std::vector<const CsvRow*>& rows, const CsvTable& table, const char* state) {
  std::vector<std::pair<std::string, int>> counts;
  for (const CsvRow* row : rows) {
    const std::string& value = table.text(*row, state);
    const auto known = std::ranges::find(counts, value, &std::pair<std::string, int>::first);
    if (known == counts.end())
      counts.emplace_back(value, 1);
    else
      ++known->second;
  }
  if (counts.size() == 1 && (counts[0].first.empty() || counts[0].first == "ok")) return fmt::format("{}", rows.size());
  std::string parts;
  for (const auto& [value, count] : counts) parts += fmt::format("{}{} {}", parts.empty() ? "" : ", ", count, value);
  return fmt::format("{} ({})", rows.size(), parts);
}

/// Inputs: one row per file, trace, protocol, machine and program version.
DocTable provenance_table(std::span<const CsvTable> tables) {
  const std::vector<const char*> keys = {"run",    "trace", "sha256",  "model", "protocol",
                                         "device", "isa",   "version", "commit"};
  DocTable out{.title = "Input files and their rows", .columns = {{"file"}, {"table"}}, .screen = true};
  for (const char* key : keys) out.columns.push_back({key});
  out.columns.push_back({"rows", false, true});
  constexpr const char* names[] = {"replay", "checks", "measures", "claims", "eval"};
  for (const CsvTable& table : tables) {
    const TableKind kind = kind_of(table);
    std::vector<std::vector<std::string>> order;
    std::map<std::vector<std::string>, std::vector<const CsvRow*>> groups;
    for (const CsvRow& row : table.rows) {
      std::vector<std::string> key;
      for (const char* column : keys) {
        const bool source = kind == TableKind::checks && std::string_view(column) == "trace";
        key.push_back(table.text(row, source ? "source" : column));
      }
      auto& group = groups[key];
      if (group.empty()) order.push_back(key);
      group.push_back(&row);
    }
    for (const auto& key : order) {
      std::vector<TableCell> cells = {table.name, names[static_cast<int>(kind)]};
      for (const std::string& value : key) cells.emplace_back(value);
      cells.emplace_back(count_text(groups[key], table,
                                    kind == TableKind::checks || kind == TableKind::claims ? "verdict" : "status"));
      out.rows.push_back(std::move(cells));
    }
  }
  return compact(std::move(out));
}

constexpr std::size_t most_sentences = 4;  // with which a report begins

/// One sentence of each of the first blocks, then more of them, the first block first. What several texts say together
/// stands for each of them.
std::vector<AnswerBlock> leading(std::vector<AnswerBlock> answers) {
  std::erase_if(answers, [](const AnswerBlock& answer) { return answer.sentences.empty(); });
  if (answers.size() > most_sentences) answers.resize(most_sentences);
  std::size_t left = most_sentences - answers.size();
  for (AnswerBlock& answer : answers) {
    const std::size_t more = std::min(left, answer.sentences.size() - 1);
    answer.sentences.resize(1 + more);
    left -= more;
  }
  return answers;
}

/// Gives every method that the registry lacks a style of its own: their names alone decide which.
void style_own_methods(std::vector<ReplaySection>& replays, std::vector<EvalSection>& evaluations) {
  std::set<std::string> names;
  const auto add = [&](const auto& row) {
    const std::string_view family = methods::family_of(row.method);
    if (family == "own" || family == "other") names.insert(row.name());
  };
  for (const EvalSection& section : evaluations) std::ranges::for_each(section.rows, add);
  for (const ReplaySection& section : replays) {
    for (const ReplayPart& part : section.parts) {
      std::ranges::for_each(part.overall, add);
      std::ranges::for_each(part.layers, add);
    }
  }
  OwnStyles own;
  for (const std::string& name : names) own.emplace(name, marks::own_style(static_cast<int>(own.size())));
  for (EvalSection& section : evaluations) section.own = own;
  for (ReplaySection& section : replays) {
    for (ReplayPart& part : section.parts) part.own = own;
  }
}
/// What several texts say together.
struct OverTexts {
  TextsTogether texts;
  Predictions predictions;
  Figure standing;  ///< where the methods stand; without drawings where too little was measured

  AnswerBlock answer() const { return answer_over_texts(texts, predictions); }
  /// Where the methods stand; folded: the sentences that were not said, and how well metrics predict KL.
  std::vector<Block> blocks(const std::vector<std::string>& said) const {
    std::vector<Block> out = {Heading{2, texts.scope}}, more;
    if (drawn()) out.emplace_back(standing);
    append_filled(more, without(answer(), said));
    if (!predictions.metrics.empty()) more.emplace_back(prediction_table(error_injection(texts.sections), predictions));
    append_folded(out, "Which attention error predicts the damage, and notes", std::move(more));
    return out.size() > 1 ? out : std::vector<Block>{};
  }
  bool drawn() const { return !standing.drawings.empty(); }
  bool has(const EvalSection& section) const { return std::ranges::count(texts.sections, &section) > 0; }
};

/// What replays predict beside what was measured: a figure for each pair of a trace with predictions and an evaluation.
/// Whether both are of the same model, a table of a replay does not say; the titles name both.
std::vector<Block> predicted_blocks(const std::vector<ReplaySection>& replays,
                                    const std::vector<EvalSection>& evaluations) {
  std::vector<Block> out;
  for (const ReplaySection& replay : replays) {
    for (const ReplayPart& part : replay.parts) {
      PredictedByName predicted;
      for (const ReplayRow& row : part.overall) {
        if (row.ok() && std::isfinite(row.kl.mean)) predicted[{row.name(), row.budget}] = row.kl.mean;
      }
      for (const EvalSection& section : evaluations) {
        Figure figure = predicted_figure(section, predicted, name_of(part));
        if (figure.drawings.empty()) continue;
        out.emplace_back(Heading{2, fmt::format("Predicted from {}, measured on {}", name_of(part), section.text)});
        out.emplace_back(std::move(figure));
      }
    }
  }
  return out;
}

}  // namespace

Document make_report(std::span<const CsvTable> tables, const ReportOptions& options) {
  ReportTables sorted;
  for (const CsvTable& table : tables) sorted.of(kind_of(table)).push_back(&table);
  Document document{
      .title = printable(options.title),
      .description = options.description,
      .made_by = fmt::format("{} {} ({}). docs/results.md defines the metrics.", written_by, version(), commit())};
  std::vector<EvalSection> evaluations = eval_sections(sorted.evaluations);
  std::vector<ReplaySection> sections = replay_sections(sorted.replays, options.rank_by);
  style_own_methods(sections, evaluations);
  std::vector<OverTexts> over_texts;
  for (const TextsTogether& texts : texts_together(evaluations)) {
    over_texts.push_back({texts, predictions_of(texts.sections), standing_figure(texts)});
    if (AnswerBlock answer = over_texts.back().answer(); !answer.sentences.empty())
      document.answers.push_back(std::move(answer));
  }
  std::vector<Predictions> predictions;
  for (const EvalSection& section : evaluations) {
    const EvalSection* const one = &section;
    predictions.push_back(predictions_of(std::span(&one, 1)));
    if (std::ranges::none_of(over_texts, [&](const OverTexts& over) { return over.has(section); }))
      document.answers.push_back(eval_answer(section, predictions.back()));
  }
  for (const ReplaySection& section : sections)
    std::ranges::move(main_answers(section), std::back_inserter(document.answers));
  document.answers = leading(std::move(document.answers));
  const bool claims = !options.published.empty() || !sorted.claims.empty();
  if (claims) document.answers.insert(document.answers.begin(), claim_answer(options.published, sorted));
  std::vector<std::string> said;
  for (const AnswerBlock& answer : document.answers) std::ranges::copy(answer.sentences, std::back_inserter(said));
  if (claims) append(document.blocks, published_blocks(options.published, sorted));
  for (const OverTexts& texts : over_texts) append(document.blocks, texts.blocks(said));
  for (std::size_t i = 0; i < evaluations.size(); ++i) {
    std::vector<Block> blocks = eval_blocks(evaluations[i], predictions[i], said);
    std::get<Heading>(blocks.front()).folded = std::ranges::any_of(
        over_texts, [&](const OverTexts& over) { return over.drawn() && over.has(evaluations[i]); });
    append(document.blocks, std::move(blocks));
  }
  append(document.blocks, predicted_blocks(sections, evaluations));
  for (const ReplaySection& section : sections) append(document.blocks, replay_blocks(section, options.files, said));
  for (const TraceRounding& one : options.rounding) {
    document.blocks.emplace_back(Heading{2, fmt::format("Rounding the keys: {}", one.trace)});
    append(document.blocks, rounding_blocks(one.heads, false));
  }
  if (!sorted.checks.empty()) append(document.blocks, check_blocks(sorted.checks));
  if (!sorted.measures.empty()) append(document.blocks, measure_blocks(sorted.measures));
  document.blocks.emplace_back(Heading{2, "Inputs", true});
  document.blocks.emplace_back(provenance_table(tables));
  return document;
}

}  // namespace kvbench::report
