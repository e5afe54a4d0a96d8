// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/eval/length.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include <fmt/ranges.h>

#include <kvbench/core/ordered_map.hpp>
#include <kvbench/report/document/writers.hpp>
#include <kvbench/report/eval/answer.hpp>
#include <kvbench/report/eval/section.hpp>
#include <kvbench/report/text/sentences.hpp>
#include <kvbench/report/text/text.hpp>

namespace kvbench::report {
namespace {

using Growths = std::span<const ConfigurationGrowth>;

bool is_of_document(const EvalRow& row) {
  return row.ok() && !row.layer && !row.over_documents() && !row.scored_sha256.empty() &&
         row.injection.mode == eval::Inject::all && !(row.method == "exact" && row.params.empty());
}

/// Equal for the rows of a document at all lengths.
std::string document_of(const EvalRow& row) { return row.document + " " + row.scored_sha256; }

/// KL of the rows that compressed the most layers.
eval::KlByLength kl_by_length(std::span<const EvalRow* const> rows) {
  Index most = 0;
  for (const EvalRow* row : rows) most = std::max(most, row->common_layers());
  eval::KlByLength out;
  for (const EvalRow* row : rows) {
    if (row->common_layers() == most) out[row->context_tokens][document_of(*row)] = kl_of(*row).mean;
  }
  return out;
}

/// Whether a document is there at two lengths.
bool has_pairs(std::span<const EvalRow* const> rows) {
  std::map<std::string, std::set<Index>> lengths;
  for (const EvalRow* row : rows) lengths[document_of(*row)].insert(row->context_tokens);
  return std::ranges::any_of(lengths, [](const auto& one) { return one.second.size() > 1; });
}

/// "512 to 4096"
std::string range_of(const std::vector<Index>& lengths) {
  return fmt::format("{} to {}", lengths.front(), lengths.back());
}

std::string factor_text(const eval::Growth& growth) {
  return interval_text(growth.factor.mean, growth.factor.lo, growth.factor.hi);
}

std::string verdict_words(const ConfigurationGrowth& of) {
  const eval::Growth& growth = of.growth;
  switch (growth.verdict) {
    case eval::Growing::grows:
      return fmt::format("KL grows {} times per doubling of the context{}", factor_text(growth),
                         growth.factor.hi <= eval::growth_margin
                             ? fmt::format(", which is less than {:g} times", eval::growth_margin)
                             : "");
    case eval::Growing::shrinks:
      return fmt::format("KL shrinks, {} times per doubling of the context", factor_text(growth));
    case eval::Growing::does_not_grow:
      return fmt::format("KL does not grow by {:g} times or more per doubling of the context: {} times",
                         eval::growth_margin, factor_text(growth));
    case eval::Growing::cannot_tell:
      break;
  }
  return growth.reason.empty()
             ? fmt::format("cannot tell whether KL grows: {} times per doubling of the context", factor_text(growth))
             : fmt::format("cannot tell whether KL grows: {}", growth.reason);
}

std::string sentence_of(const ConfigurationGrowth& of) {
  const eval::Growth& growth = of.growth;
  std::string out = fmt::format("{} at {}: {}", of.row->name(), budget_words(of.row->budget), verdict_words(of));
  if (growth.reason.empty())
    out += fmt::format(", {} tokens, {} documents", range_of(growth.lengths), growth.documents);
  if (growth.reason.empty() && !growth.at_floor.empty())
    out += fmt::format(" (left out: {} tokens, where a KL is below {:g} nats)", fmt::join(growth.at_floor, ", "),
                       eval::kl_floor);
  return out + ".";
}

std::vector<Index> all_lengths(Growths growths) {
  std::set<Index> lengths;
  for (const ConfigurationGrowth& of : growths) {
    lengths.insert(of.growth.lengths.begin(), of.growth.lengths.end());
    lengths.insert(of.growth.at_floor.begin(), of.growth.at_floor.end());
  }
  return {lengths.begin(), lengths.end()};
}

std::string kl_at(const eval::Growth& growth, Index length) {
  const auto found = std::ranges::find(growth.lengths, length);
  if (found != growth.lengths.end() && !growth.kl.empty())
    return short_number(growth.kl[static_cast<std::size_t>(found - growth.lengths.begin())].mean);
  return std::ranges::find(growth.at_floor, length) == growth.at_floor.end() ? "-" : "rounding";
}

/// The words behind each table and figure.
std::string meaning() {
  return fmt::format(
      "Documents are the same at all lengths: the same scored tokens behind the last tokens of the context. KL is the "
      "geometric mean over documents. Per doubling: by what KL is multiplied when the context doubles, with a 95 % "
      "interval over documents (Student's t of the slopes). 'grows' and 'shrinks': the interval excludes 1; 'does not "
      "grow': its upper end is at most {:g}.",
      eval::growth_margin);
}

/// Lists of lengths are of the task text alone.
Figure growth_figure(Growths growths, const EvalSection& section) {
  std::vector<KlCurve> curves;
  for (const ConfigurationGrowth& of : growths)
    if (!of.growth.kl.empty()) curves.push_back({of.row, "", of.growth.lengths, of.growth.kl});
  return kl_figure(
      {.title = "Damage and the length of the context",
       .caption = "Geometric mean KL over the same documents at each length; bars: its 95 % interval over "
                  "documents. The factor per doubling is paired by document, and more exact than the bars."},
      curves, {.scale = Scale::log, .title = "tokens of the context"}, section);
}

/// What sections have in common that differ in the length of the context alone.
std::string setting_without_length(const EvalSection& s) {
  const EvalRow& row = s.rows.front();
  return fmt::format("{} {} {} {} {}", s.text, row.sha256, s.device, s.inject_scale, setting_of(s, "")) +
         (s.settings.document_seed ? std::to_string(*s.settings.document_seed) : "");
}

DocTable growth_table(Growths growths) {
  std::vector<RowColumn<ConfigurationGrowth>> columns = {
      {{"method"}, [](const ConfigurationGrowth& of) { return of.row->name(); }},
      {{"budget", true}, [](const ConfigurationGrowth& of) { return TableCell(of.row->budget); }}};
  for (const Index length : all_lengths(growths))
    columns.push_back({{fmt::format("KL at {}", length), true},
                       [length](const ConfigurationGrowth& of) { return kl_at(of.growth, length); }});
  columns.push_back({{"per doubling", true}, [](const ConfigurationGrowth& of) { return factor_text(of.growth); }});
  columns.push_back(
      {{"verdict"}, [](const ConfigurationGrowth& of) { return TableCell(std::string(name_of(of.growth.verdict))); }});
  return filled<ConfigurationGrowth>({.title = "Damage and the length of the context", .sortable = true}, columns,
                                     growths);
}

}  // namespace

std::vector<ConfigurationGrowth> growths_of(std::span<const EvalRow* const> rows) {
  OrderedMap<std::string, std::vector<const EvalRow*>> configurations;
  for (const EvalRow* row : rows) {
    if (is_of_document(*row)) configurations[row->name() + '\n' + row->budget.text()].push_back(row);
  }
  std::vector<ConfigurationGrowth> out;
  bool any = false;
  for (const auto& [name, of] : configurations.items()) {
    any = any || has_pairs(of);
    out.push_back({of.front(), eval::growth_of(kl_by_length(of))});
  }
  if (!any) out.clear();
  return out;
}

std::vector<std::string> growth_answers(Growths growths) {
  std::vector<std::string> out;
  for (const ConfigurationGrowth& of : growths) out.push_back(sentence_of(of));
  return out;
}

std::vector<Block> brief_growth(Growths growths, const std::string& rest) {
  return brief_table(
      growth_table(growths),
      fmt::format("KL when the context doubles; 'does not grow': at most {:g} times.", eval::growth_margin), rest);
}

std::vector<LengthSection> length_sections(std::span<const EvalSection> evaluations) {
  OrderedMap<std::string, std::vector<const EvalSection*>> settings;
  for (const EvalSection& section : evaluations) {
    if (!section.rows.empty()) settings[setting_without_length(section)].push_back(&section);
  }
  std::vector<LengthSection> out;
  for (const auto& [setting, sections] : settings.items()) {
    RowsOfText rows;
    for (const EvalSection* section : sections)
      for (const EvalRow& row : section->rows) rows.push_back(&row);
    const std::vector<ConfigurationGrowth> growths = growths_of(rows);
    if (growths.empty()) continue;
    const EvalSection& first = *sections.front();
    const std::string scope = fmt::format("{} on {}, {} tokens of context{}", first.model, first.text,
                                          range_of(all_lengths(growths)), first.distinction);
    AnswerBlock answer{scope, growth_answers(growths)};
    LengthSection& one =
        out.emplace_back(LengthSection{.section = {.title = scope, .answers = {answer}},
                                       .lengths = sections,
                                       .longest = *std::ranges::max_element(sections, {}, [](const EvalSection* s) {
                                         return s->rows.front().context_tokens;
                                       })});
    append_filled(one.section.blocks, growth_figure(growths, first));
    append_filled(one.section.blocks, growth_table(growths));
    one.section.blocks.emplace_back(Paragraph{meaning()});
    append_filled(one.section.blocks, std::move(answer));
    name_source(one.section.blocks, scope, "", "Bars: 95 % intervals over documents.");
  }
  return out;
}

}  // namespace kvbench::report
