// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/eval/section.hpp>

#include <set>

#include <fmt/format.h>

#include <kvbench/report/eval/damage_figures.hpp>
#include <kvbench/report/eval/depth.hpp>
#include <kvbench/report/eval/prediction.hpp>
#include <kvbench/report/text/text.hpp>

namespace kvbench::report {
namespace {

std::string short_cell(double value) { return std::isnan(value) ? "" : short_number(value); }

std::string interval_cell(const eval::Estimate& value) { return interval_text(value.mean, value.lo, value.hi); }

DocTable configuration_table(const EvalSection& section) {
  DocTable table{.title = "Damage to the output by configuration",
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
                 .rows = {},
                 .sortable = true};
  for (const std::string& task : section.tasks) {
    for (const EvalRow* row : section.find(task, "all", "all")) {
      table.rows.push_back({task, row->name(), row->budget, short_number(row->held()), interval_cell(row->kl),
                            short_cell(row->kl_p99), interval_cell(row->same_top), interval_cell(row->nll_difference),
                            interval_cell(row->key_nll_difference), std::string(name_of(row->nll_verdict)),
                            short_cell(row->match_full), short_cell(row->match), short_cell(row->harmful),
                            short_cell(row->beneficial), std::string(name_of(row->match_verdict))});
    }
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
      .rows = {},
      .screen = true};
  for (const EvalRow& row : section.fewer_layers)
    table.rows.push_back({row.task, row.name(), row.budget, fmt::format("{}", row.compressed_layers),
                          interval_cell(row.kl), row.reason});
  return table;
}

DocTable broken_table(const EvalSection& section) {
  DocTable table{.title = "Configurations without results",
                 .columns = {{"task"}, {"method"}, {"budget", true}, {"status"}, {"reason", false, true}},
                 .rows = {},
                 .screen = true};
  for (const EvalRow& row : section.broken)
    table.rows.push_back({row.task, row.name(), row.budget, {std::string(name_of(row.status)), Tone::bad}, row.reason});
  return table;
}

}  // namespace

std::vector<Block> eval_blocks(const EvalSection& section, const Predictions& predictions) {
  const std::string layers = layers_text(section.settings);
  std::vector<Block> blocks = {
      Heading{2, fmt::format("Damage to the output of {} on {}{}", section.model, section.text, section.distinction)},
      Paragraph{
          fmt::format("Documents of {} with contexts of {} tokens, question {} the compressed context. Methods "
                      "compute the attention of the scored tokens in {} of the running model{}. Every figure is "
                      "paired with the full cache on the same tokens. Weights: {}; cache: {}; protected tokens: "
                      "{}; decoded tokens: {}; digests of the documents: {}.",
                      section.text, section.context, section.question, layers,
                      layers.starts_with("all") ? "" : "; the others keep their full cache, which the bytes count",
                      section.settings.weights, section.settings.kv_dtype, section.settings.protect,
                      section.settings.decoded, section.documents)}};
  for (Block& block : discrimination(section)) blocks.push_back(std::move(block));
  for (Block& block : damage_figures(section)) blocks.push_back(std::move(block));
  if (DocTable table = configuration_table(section); !table.rows.empty()) blocks.emplace_back(std::move(table));
  if (!predictions.metrics.empty()) {
    if (Figure figure = prediction_figure(section, predictions.metrics.front().metric); !figure.drawings.empty())
      blocks.emplace_back(std::move(figure));
    blocks.emplace_back(Paragraph{
        "Pairs: two methods at the same budget of the same task; their share that the metric puts in the same order as "
        "KL. Close pairs: those whose KL differs by a factor of 3 at most, between which a choice is difficult. "
        "Intervals are over documents; the columns 'without one method' show the range where any one method is left "
        "out. The best metric was chosen by the data that test it, so its figures are somewhat too good. The last rows "
        "show how well KL itself, measured on other documents, orders the pairs. Metrics that only some methods have "
        "come after the others: their pairs are other ones. 'minus rel_err' is the share minus that of the relative "
        "error on the same pairs."});
    blocks.emplace_back(prediction_table(error_injection(section), predictions));
  }
  for (Block& block : depth_blocks(section)) blocks.push_back(std::move(block));
  if (DocTable fewer = fewer_layers_table(section); !fewer.rows.empty()) blocks.emplace_back(std::move(fewer));
  if (DocTable broken = broken_table(section); !broken.rows.empty()) blocks.emplace_back(std::move(broken));
  return blocks;
}

}  // namespace kvbench::report
