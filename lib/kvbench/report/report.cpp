// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/report.hpp>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>
#include <span>

#include <fmt/format.h>

#include <kvbench/core/ordered_map.hpp>
#include <kvbench/core/utf8.hpp>
#include <kvbench/core/version.hpp>
#include <kvbench/methods/registry.hpp>
#include <kvbench/report/eval/section.hpp>
#include <kvbench/report/read/table_kind.hpp>
#include <kvbench/report/replay/sections.hpp>
#include <kvbench/report/text/text.hpp>

namespace kvbench::report {
namespace {

/// "138 (132 ok, 6 skipped)"
std::string count_text(const std::vector<const CsvRow*>& rows, const CsvTable& table, const char* state) {
  OrderedMap<std::string, int> by_state;
  for (const CsvRow* row : rows) ++by_state[table.text(*row, state)];
  const auto& counts = by_state.items();
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
    if (kind == TableKind::listing) continue;
    const bool checks = kind == TableKind::checks;
    OrderedMap<std::vector<std::string>, std::vector<const CsvRow*>> groups;
    for (const CsvRow& row : table.rows) {
      std::vector<std::string> key;
      for (const std::string_view column : keys)
        key.push_back(table.text(row, checks && column == "trace" ? "source" : column));
      groups[key].push_back(&row);
    }
    for (const auto& [key, rows] : groups.items()) {
      auto& cells = out.rows.emplace_back(std::vector<TableCell>{table.name, names[static_cast<int>(kind)]});
      cells.insert(cells.end(), key.begin(), key.end());
      cells.emplace_back(count_text(rows, table, checks || kind == TableKind::claims ? "verdict" : "status"));
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
/// What replays predict beside what was measured: a figure for each pair of a trace with predictions and an evaluation.
/// Whether both are of the same model, a table of a replay does not say; the titles name both.
std::vector<Section> predicted_sections(std::span<const ReplaySection> replays,
                                        std::span<const EvalSection> evaluations) {
  std::vector<Section> out;
  for (const ReplaySection& replay : replays) {
    for (const ReplayPart& part : replay.parts) {
      PredictedByName predicted;
      for (const ReplayRow& row : part.overall) {
        if (row.ok() && std::isfinite(row.kl.mean)) predicted[{row.name(), row.budget}] = row.kl.mean;
      }
      for (const EvalSection& section : evaluations) {
        out.push_back({.title = fmt::format("Predicted from {}, measured on {}", name_of(part), section.text)});
        append_filled(out.back().blocks, predicted_figure(section, predicted, name_of(part)));
      }
    }
  }
  return out;
}

std::vector<Section> rounding_sections(std::span<const TraceRounding> traces) {
  std::vector<Section> out;
  for (const TraceRounding& one : traces)
    out.push_back(
        {.title = fmt::format("Rounding the keys: {}", one.trace), .blocks = rounding_blocks(one.heads, false)});
  return out;
}

/// What a page is made of.
struct Contents {
  std::span<const CsvTable> files;
  const ReportOptions& options;
  ReportTables tables = {};
  std::vector<EvalSection> evaluations = {};
  std::vector<ReplaySection> replays = {};
};

/// The kinds of sections in the order of a page. A kind makes none where there are no rows for it; a section without
/// blocks is left out.
constexpr std::vector<Section> (*kinds_of_sections[])(const Contents&) = {
    [](const Contents& c) { return listing_sections(c.tables.listings); },
    [](const Contents& c) { return claim_sections(c.options.published, c.tables); },
    [](const Contents& c) { return sections_of(c.evaluations); },
    [](const Contents& c) { return predicted_sections(c.replays, c.evaluations); },
    [](const Contents& c) { return sections_of(c.replays, c.options.files); },
    [](const Contents& c) { return rounding_sections(c.options.rounding); },
    [](const Contents& c) { return check_sections(c.tables.checks); },
    [](const Contents& c) { return measure_sections(c.tables.measures); },
    [](const Contents& c) {
      return std::vector<Section>{{.title = "Inputs", .blocks = {provenance_table(c.files)}, .folded = true}};
    }};

/// The blocks without the sentences with which the page opens, and without headings of nothing.
std::vector<Block> without(std::vector<Block> blocks, const std::vector<std::string>& said) {
  std::vector<Block> out;
  const auto drop_heading = [&] {
    const auto* const last = out.empty() ? nullptr : std::get_if<Heading>(&out.back());
    if (last != nullptr && last->folded) out.pop_back();
  };
  for (Block& block : blocks) {
    if (auto* const answer = std::get_if<AnswerBlock>(&block))
      std::erase_if(answer->sentences, [&](const std::string& one) { return std::ranges::count(said, one) > 0; });
    if (std::holds_alternative<Heading>(block)) drop_heading();
    append_filled(out, std::move(block));
  }
  drop_heading();
  return out;
}

/// Leaves out captions that a figure before has. What a file of the figure alone says stays.
void say_captions_once(std::vector<Block>& blocks) {
  Distinct<std::string> captions;
  for (Block& block : blocks) {
    auto* const figure = std::get_if<Figure>(&block);
    if (figure == nullptr || figure->caption.empty() || captions.add(figure->caption)) continue;
    if (figure->alone.empty()) figure->alone = figure->title + ". " + figure->caption;
    figure->caption.clear();
  }
}

}  // namespace

Document make_report(std::span<const CsvTable> tables, const ReportOptions& options) {
  Contents contents{.files = tables, .options = options};
  for (const CsvTable& table : tables) contents.tables.of(kind_of(table)).push_back(&table);
  contents.evaluations = eval_sections(contents.tables.evaluations);
  contents.replays = replay_sections(contents.tables.replays, options.rank_by);
  style_own_methods(contents.replays, contents.evaluations);
  std::vector<Section> sections;
  for (const auto kind : kinds_of_sections) std::ranges::move(kind(contents), std::back_inserter(sections));
  std::vector<AnswerBlock> whole, others;
  for (const Section& section : sections)
    std::ranges::copy(section.answers, std::back_inserter(section.whole ? whole : others));
  std::ranges::move(leading(std::move(others)), std::back_inserter(whole));
  std::vector<std::string> said;
  for (const AnswerBlock& answer : whole) std::ranges::copy(answer.sentences, std::back_inserter(said));
  Document document{
      .title = printable(options.title),
      .description = options.description,
      .made_by = fmt::format("{} {} ({}). docs/results.md defines the metrics.", written_by, version(), commit()),
      .answers = std::move(whole)};
  for (Section& section : sections) {
    std::vector<Block> blocks = without(std::move(section.blocks), said);
    if (blocks.empty()) continue;
    document.blocks.emplace_back(Heading{2, section.title, section.folded});
    append(document.blocks, std::move(blocks));
  }
  say_captions_once(document.blocks);
  return document;
}

}  // namespace kvbench::report
