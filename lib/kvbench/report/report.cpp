// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/report.hpp>

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include <kvbench/core/utf8.hpp>
#include <kvbench/core/version.hpp>
#include <kvbench/methods/registry.hpp>
#include <kvbench/report/claims/check_section.hpp>
#include <kvbench/report/claims/measure_section.hpp>
#include <kvbench/report/claims/published_section.hpp>
#include <kvbench/report/eval/answer.hpp>
#include <kvbench/report/eval/prediction.hpp>
#include <kvbench/report/eval/section.hpp>
#include <kvbench/report/provenance.hpp>
#include <kvbench/report/read/table_kind.hpp>
#include <kvbench/report/replay/section.hpp>
#include <kvbench/report/text/text.hpp>

namespace kvbench::report {
namespace {

void append(std::vector<Block>& blocks, std::vector<Block> more) {
  for (Block& block : more) blocks.push_back(std::move(block));
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

}  // namespace

Document make_report(std::span<const CsvTable> tables, const ReportOptions& options) {
  ReportTables sorted;
  for (const CsvTable& table : tables) sorted.of(kind_of(table)).push_back(&table);
  Document document{
      .title = printable(options.title),
      .description = options.description,
      .made_by = fmt::format("{} {} ({}). docs/results.md defines the metrics.", written_by, version(), commit()),
      .answers = {},
      .blocks = {}};
  std::vector<EvalSection> evaluations = eval_sections(sorted.evaluations);
  std::vector<ReplaySection> sections = replay_sections(sorted.replays);
  style_own_methods(sections, evaluations);
  std::vector<Block> over_texts;
  for (const TextsTogether& texts : texts_together(evaluations)) {
    const Predictions predictions = predictions_of(texts.sections);
    if (AnswerBlock answer = answer_over_texts(texts, predictions); !answer.sentences.empty())
      document.answers.push_back(std::move(answer));
    if (predictions.metrics.empty()) continue;
    over_texts.emplace_back(Heading{2, texts.scope});
    over_texts.emplace_back(prediction_table(error_injection(texts.sections), predictions));
  }
  std::vector<Predictions> predictions;
  for (const EvalSection& section : evaluations) {
    const EvalSection* const one = &section;
    predictions.push_back(predictions_of(std::span(&one, 1)));
    document.answers.push_back(eval_answer(section, predictions.back()));
  }
  for (const ReplaySection& section : sections) {
    for (AnswerBlock& answer : main_answers(section)) document.answers.push_back(std::move(answer));
  }
  if (!options.published.empty() || !sorted.claims.empty())
    append(document.blocks, published_blocks(options.published, sorted));
  append(document.blocks, std::move(over_texts));
  // The answers of the only section are above it.
  const bool several = evaluations.size() + sections.size() > 1 || !document.blocks.empty();
  for (std::size_t i = 0; i < evaluations.size(); ++i) {
    std::vector<Block> blocks = eval_blocks(evaluations[i], predictions[i]);
    if (several) blocks.insert(blocks.begin() + 1, eval_answer(evaluations[i], predictions[i]));
    append(document.blocks, std::move(blocks));
  }
  for (const ReplaySection& section : sections) append(document.blocks, replay_blocks(section, options.files, several));
  if (!sorted.checks.empty()) append(document.blocks, check_blocks(sorted.checks));
  if (!sorted.measures.empty()) append(document.blocks, measure_blocks(sorted.measures));
  document.blocks.emplace_back(Heading{2, "Inputs"});
  document.blocks.emplace_back(provenance_table(tables));
  return document;
}

}  // namespace kvbench::report
