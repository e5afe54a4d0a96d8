// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/eval/section.hpp>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>

#include <fmt/format.h>

#include <kvbench/report/eval/figures.hpp>
#include <kvbench/report/eval/prediction.hpp>
#include <kvbench/report/text/sentences.hpp>
#include <kvbench/report/text/text.hpp>

namespace kvbench::report {
namespace {

std::string short_cell(double value) { return std::isnan(value) ? "" : short_number(value); }

std::string interval_cell(const eval::Estimate& value) { return interval_text(value.mean, value.lo, value.hi); }

using RowList = std::vector<const EvalRow*>;

DocTable configuration_table(const std::string& title, const RowList& rows) {
  DocTable table{.title = title,
                 .columns = {{"task"},
                             {"method"},
                             {"budget", true},
                             {"bytes/full", true},
                             {"KL", true},
                             {"KL p99", true, false, true},
                             {"top-1", true},
                             {"nll difference", true},
                             {"key nll difference", true, false, true},
                             {"nll verdict", false, false, true},
                             {"match, full", true},
                             {"match", true},
                             {"harmful", true, false, true},
                             {"beneficial", true, false, true},
                             {"match verdict", false, false, true}},
                 .sortable = true};
  for (const EvalRow* row : rows) {
    table.rows.push_back(
        {row->task, row->name(), row->budget.text(), short_number(row->held()),
         interval_cell(row->of(eval::damage("kl_mean"))), short_cell(row->of(eval::damage("kl_p99")).mean),
         interval_cell(row->of(eval::damage("top1"))), interval_cell(row->of(eval::damage("nll_diff"))),
         interval_cell(row->of(eval::damage("key_nll_diff"))), std::string(name_of(row->nll_verdict)),
         short_cell(row->of(eval::damage("match_full")).mean), short_cell(row->of(eval::damage("match")).mean),
         short_cell(row->of(eval::damage("harmful")).mean), short_cell(row->of(eval::damage("beneficial")).mean),
         std::string(name_of(row->match_verdict))});
  }
  return compact(std::move(table));
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
  DocTable table{
      .title = "Not compared: configurations that compressed fewer layers",
      .columns = {{"task"}, {"method"}, {"budget", true}, {"layers", true}, {"KL", true}, {"reason", false, true}},
      .screen = true};
  for (const EvalRow& row : section.fewer_layers)
    table.rows.push_back({row.task, row.name(), row.budget.text(), fmt::format("{}", row.compressed_layers),
                          interval_cell(row.of(eval::damage("kl_mean"))), row.reason});
  return table;
}

DocTable broken_table(const EvalSection& section) {
  DocTable table{.title = "Configurations without results",
                 .columns = {{"task"}, {"method"}, {"budget", true}, {"status"}, {"reason", false, true}},
                 .screen = true};
  for (const EvalRow& row : section.broken)
    table.rows.push_back(
        {row.task, row.name(), row.budget.text(), {std::string(name_of(row.status)), Tone::bad}, row.reason});
  return table;
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
  std::ranges::stable_sort(rows, {}, [](const EvalRow* row) { return row->of(eval::damage("kl_mean")).mean; });
  return configuration_table(
      fmt::format("Damage to the output at {}, task {}", budget_words(budget), section.tasks.front()), rows);
}

Paragraph setting_paragraph(const EvalSection& section) {
  const std::string layers = layers_text(section.settings);
  return {
      fmt::format("Documents of {} with contexts of {} tokens, question {} the compressed context. Methods "
                  "compute the attention of the scored tokens in {} of the running model{}. Every figure is "
                  "paired with the full cache on the same tokens. Weights: {}; cache: {}; protected tokens: "
                  "{}; decoded tokens: {}; digests of the documents: {}.",
                  section.text, section.context, section.question, layers,
                  layers.starts_with("all") ? "" : "; the others keep their full cache, which the bytes count",
                  section.settings.weights, section.settings.kv_dtype, section.settings.protect,
                  section.settings.decoded, section.documents)};
}

std::vector<Block> prediction_blocks(const EvalSection& section, const Predictions& predictions) {
  std::vector<Block> blocks;
  if (predictions.metrics.empty()) return blocks;
  append_filled(blocks, prediction_figure(section, predictions.metrics.front().metric));
  blocks.emplace_back(Paragraph{
      "Pairs: two methods at the same budget of the same task; their share that the metric puts in the same order as "
      "KL. Close pairs: those whose KL differs by a factor of 3 at most, between which a choice is difficult. "
      "Intervals are over documents; the columns 'without one method' show the range where any one method is left "
      "out. The best metric was chosen by the data that test it, so its figures are somewhat too good. The last rows "
      "show how well KL itself, measured on other documents, orders the pairs. Metrics that only some methods have "
      "come after the others: their pairs are other ones. 'minus rel_err' is the share minus that of the relative "
      "error on the same pairs."});
  blocks.emplace_back(prediction_table(error_injection(section), predictions));
  return blocks;
}

/// What files of single figures say of all of them.
std::string source_of(const EvalSection& section) {
  return fmt::format("{} on {}, {} tokens, {}; {}.", section.model, section.text, section.context,
                     layers_text(section.settings), budget_words(section.budgets));
}

}  // namespace

std::vector<Block> eval_blocks(const EvalSection& section, const Predictions& predictions,
                               const std::vector<std::string>& said) {
  std::vector<Block> blocks = {
      Heading{2, fmt::format("Damage to the output of {} on {}{}", section.model, section.text, section.distinction)}};
  std::vector<Figure> figures = damage_figures(section);
  std::vector<Block> more;
  if (std::optional<Figure> first = take_first_drawing(figures)) blocks.emplace_back(*std::move(first));
  append_filled(blocks, main_table(section));
  append_filled(more, without(eval_answer(section, predictions), said));
  more.emplace_back(setting_paragraph(section));
  append(more, discrimination(section));
  for (Figure& figure : figures) append_filled(more, std::move(figure));
  append_filled(more, configuration_table("Damage to the output by configuration", rows_of_tasks(section)));
  append_folded(blocks, "All tasks and budgets, and notes", std::move(more));
  append_folded(blocks, "Which attention error predicts the damage", prediction_blocks(section, predictions));
  append_folded(blocks, "By layer", depth_blocks(section));
  std::vector<Block> missing;
  append_filled(missing, fewer_layers_table(section));
  append_filled(missing, broken_table(section));
  append_folded(blocks, "Configurations without results, or of fewer layers", std::move(missing));
  for (Block& block : blocks) {
    if (auto* const figure = std::get_if<Figure>(&block))
      figure->alone = fmt::format("{} Bars: 95 % intervals over documents. {}", source_of(section), figure->alone);
  }
  return blocks;
}

}  // namespace kvbench::report
