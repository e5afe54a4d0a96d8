// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/eval/section.hpp>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <set>

#include <fmt/format.h>

#include <kvbench/report/eval/length.hpp>
#include <kvbench/report/eval/turns.hpp>
#include <kvbench/report/text/sentences.hpp>
#include <kvbench/report/text/text.hpp>

namespace kvbench::report {
namespace {

using RowList = std::vector<const EvalRow*>;

/// A figure with its interval.
auto interval_of(eval::Damage figure) {
  return [figure](const EvalRow& row) {
    const eval::Estimate& value = row.of(figure);
    return interval_text(value.mean, value.lo, value.hi);
  };
}
auto mean_alone(eval::Damage figure) {
  return [figure](const EvalRow& row) {
    const double mean = row.of(figure).mean;
    return std::isnan(mean) ? "" : short_number(mean);
  };
}

/// The columns by which tables name a configuration, before those of what they say of it.
std::vector<RowColumn<EvalRow>> with_names(std::vector<RowColumn<EvalRow>> columns) {
  std::vector<RowColumn<EvalRow>> out = {
      {{"task"}, &EvalRow::task}, {{"method"}, &EvalRow::name}, {{"budget", true}, &EvalRow::budget}};
  std::ranges::move(columns, std::back_inserter(out));
  return out;
}

DocTable configuration_table(const std::string& title, const RowList& rows) {
  return compact(filled<EvalRow>(
      {.title = title, .sortable = true},
      with_names({{{"bytes/full", true}, [](const EvalRow& row) { return short_number(row.held()); }},
                  {{"KL", true}, interval_of(eval::damage("kl_mean"))},
                  {{"KL p99", true, false, true}, mean_alone(eval::damage("kl_p99"))},
                  {{"top-1", true}, interval_of(eval::damage("top1"))},
                  {{"first 32 alike", true}, interval_of(eval::damage("alike_32"))},
                  {{"first 64 alike", true}, interval_of(eval::damage("alike_64"))},
                  {{"first 256 alike", true}, interval_of(eval::damage("alike_256"))},
                  {{"repetition difference", true, false, true}, interval_of(eval::damage("repetition_diff"))},
                  {{"nll difference", true}, interval_of(eval::damage("nll_diff"))},
                  {{"key nll difference", true, false, true}, interval_of(eval::damage("key_nll_diff"))},
                  {{"nll verdict", false, false, true}, &EvalRow::nll_verdict},
                  {{"match, full", true}, mean_alone(eval::damage("match_full"))},
                  {{"match", true}, mean_alone(eval::damage("match"))},
                  {{"harmful", true, false, true}, mean_alone(eval::damage("harmful"))},
                  {{"beneficial", true, false, true}, mean_alone(eval::damage("beneficial"))},
                  {{"match verdict", false, false, true}, &EvalRow::match_verdict},
                  {{"valid JSON, full", true}, mean_alone(eval::damage("json_full"))},
                  {{"valid JSON", true}, interval_of(eval::damage("json"))},
                  {{"JSON verdict", false, false, true}, &EvalRow::json_verdict}}),
      rows));
}

/// Why tasks cannot discriminate, one sentence per task and reason.
std::vector<Block> discrimination(const EvalSection& section) {
  DistinctTexts sentences;
  for (const EvalRow& row : section.rows) {
    const std::string& reason = row.verdict_reason;
    if (!reason.empty()) sentences.add(fmt::format("Task {} cannot discriminate: {}.", row.task, reason));
  }
  std::vector<Block> out;
  for (const std::string& sentence : sentences.list()) out.emplace_back(Paragraph{sentence});
  return out;
}

DocTable fewer_layers_table(const EvalSection& section) {
  return filled<EvalRow>({.title = "Not compared: configurations that compressed fewer layers", .screen = true},
                         with_names({{{"layers", true}, &EvalRow::compressed_layers},
                                     {{"KL", true}, interval_of(eval::damage("kl_mean"))},
                                     {{"reason", false, true}, &EvalRow::reason}}),
                         section.fewer_layers);
}

DocTable broken_table(const EvalSection& section) {
  return filled<EvalRow>(
      {.title = "Configurations without results", .screen = true},
      with_names(
          {{{"status"}, [](const EvalRow& row) { return TableCell(std::string(name_of(row.status)), Tone::bad); }},
           {{"reason", false, true}, &EvalRow::reason}}),
      section.broken);
}

RowList rows_of_tasks(const EvalSection& section) {
  RowList rows;
  for (const std::string& task : section.tasks)
    std::ranges::copy(section.find(task, "all", "all"), std::back_inserter(rows));
  return rows;
}

/// Of the first task, at the budget that is nearest to a quarter, in ascending order of KL.
DocTable main_table(const EvalSection& section) {
  if (section.tasks.empty()) return {};
  RowList rows = section.find(section.tasks.front(), "all", "all");
  Distinct<Budget> budgets;
  for (const EvalRow* row : rows) budgets.add(row->budget);
  if (rows.empty()) return {};
  const Budget budget = main_budgets(budgets.list()).front();
  std::erase_if(rows, [&](const EvalRow* row) { return row->budget != budget; });
  std::ranges::stable_sort(rows, {}, [](const EvalRow* row) { return kl_of(*row).mean; });
  return configuration_table(
      fmt::format("Damage to the output at {}, task {}", budget_words(budget), section.tasks.front()), rows);
}

Paragraph setting_paragraph(const EvalSection& section) {
  const std::string layers = layers_text(section.settings);
  return {fmt::format(
      "Documents of {} with contexts of {} tokens, question {} the compressed context. Methods "
      "compute the attention of {} in {} of the running model{}. Every figure is "
      "paired with the full cache on the same tokens. Weights: {}; cache: {}; protected tokens: "
      "{}; decoded tokens: {}{}; digests of the documents: {}.",
      section.text, section.context, section.question,
      section.settings.protocol == eval::EvalProtocol()
          ? "the scored tokens"
          : fmt::format("all tokens (protocol {})", section.settings.protocol.text()),
      layers, layers.starts_with("all") ? "" : "; the others keep their full cache, which the bytes count",
      section.settings.weights, section.settings.kv_dtype, section.settings.protect, section.settings.decoded,
      section.settings.generate.empty() ? "" : "; generated tokens: " + section.settings.generate, section.documents)};
}

std::vector<Block> prediction_blocks(const EvalSection& section, const Predictions& predictions) {
  std::vector<Block> blocks;
  if (predictions.metrics.empty()) return blocks;
  append_filled(blocks, prediction_figure(section, predictions));
  blocks.emplace_back(Paragraph{
      "Pairs: two methods at the same budget of the same task; their share that the metric puts in the same order as "
      "KL. Close pairs: those whose KL differs by a factor of 3 at most, between which a choice is difficult. "
      "Intervals are over documents; the columns 'without one method' show the range where any one method is left "
      "out. The best metric was chosen by the data that test it, so its figures are somewhat too good. The last rows "
      "show how well KL itself, measured on other documents, orders the pairs. Metrics that only some methods have "
      "come after the others: their pairs are other ones. 'minus rel_err' is the share minus that of the relative "
      "error on the same pairs."});
  blocks.emplace_back(prediction_table(predictions));
  return blocks;
}

/// Which methods change the output least, then which attention metric predicts damage best, and how well.
Section section_of(const EvalSection& section) {
  const EvalSection* const one = &section;
  const RowsOfText rows = rows_of(section);
  const Predictions predictions = predictions_of(std::span(&one, 1));
  AnswerBlock answer{
      fmt::format("{} on {}, {} tokens{}", section.model, section.text, section.context, section.distinction),
      damage_answers(std::span(&rows, 1))};
  std::ranges::move(prediction_sentences(predictions), std::back_inserter(answer.sentences));
  Section out{
      .title = fmt::format("Damage to the output of {} on {}{}", section.model, section.text, section.distinction),
      .answers = {answer}};
  std::vector<Figure> figures = damage_figures(section);
  if (std::optional<Figure> first = take_first_drawing(figures)) out.blocks.emplace_back(*std::move(first));
  append_filled(out.blocks, main_table(section));
  std::vector<Block> more, missing;
  append_filled(more, std::move(answer));
  more.emplace_back(setting_paragraph(section));
  append(more, discrimination(section));
  for (Figure& figure : figures) append_filled(more, std::move(figure));
  append_filled(more, configuration_table("Damage to the output by configuration", rows_of_tasks(section)));
  append_folded(out.blocks, "All tasks and budgets, and notes", std::move(more));
  append_folded(out.blocks, "Which attention error predicts the damage", prediction_blocks(section, predictions));
  append_folded(out.blocks, "By layer", depth_blocks(section));
  append_filled(missing, fewer_layers_table(section));
  append_filled(missing, broken_table(section));
  append_folded(out.blocks, "Configurations without results, or of fewer layers", std::move(missing));
  name_source(out.blocks,
              fmt::format("{} on {}, {} tokens, {}", section.model, section.text, section.context,
                          layers_text(section.settings)),
              budget_words(section.budgets), "Bars: 95 % intervals over documents.");
  return out;
}

/// Where the methods stand; folded: how well metrics predict KL.
Section section_of(const TextsTogether& texts) {
  const Predictions predictions = predictions_of(texts.sections);
  AnswerBlock answer{texts.scope, damage_answers(texts.rows())};
  if (!answer.sentences.empty() && !predictions.metrics.empty())
    std::ranges::move(prediction_sentences(predictions), std::back_inserter(answer.sentences));
  Section out{.title = texts.scope, .answers = {answer}};
  append_filled(out.blocks, standing_figure(texts));
  std::vector<Block> more;
  append_filled(more, std::move(answer));
  if (!predictions.metrics.empty()) more.emplace_back(prediction_table(predictions));
  append_folded(out.blocks, "Which attention error predicts the damage, and notes", std::move(more));
  return out;
}

}  // namespace

std::vector<Section> sections_of(std::span<const EvalSection> evaluations) {
  std::vector<Section> out;
  std::set<const EvalSection*> answered, drawn, at_a_length;
  for (Section& one : turn_sections(evaluations)) out.push_back(std::move(one));
  for (LengthSection& one : length_sections(evaluations)) {
    out.push_back(std::move(one.section));
    at_a_length.insert(one.lengths.begin(), one.lengths.end());
    answered.insert(one.lengths.begin(), one.lengths.end());
    answered.erase(one.longest);
  }
  for (const TextsTogether& texts : texts_together(evaluations)) {
    out.push_back(section_of(texts));
    const auto is_figure = [](const Block& block) { return std::holds_alternative<Figure>(block); };
    answered.insert(texts.sections.begin(), texts.sections.end());
    if (std::ranges::any_of(out.back().blocks, is_figure)) drawn.insert(texts.sections.begin(), texts.sections.end());
  }
  for (const EvalSection& section : evaluations) {
    Section& one = out.emplace_back(section_of(section));
    if (answered.contains(&section)) one.answers.clear();
    if (at_a_length.contains(&section)) one.title += fmt::format(", {} tokens", section.context);
    one.folded = drawn.contains(&section) || at_a_length.contains(&section);
  }
  return out;
}

}  // namespace kvbench::report
