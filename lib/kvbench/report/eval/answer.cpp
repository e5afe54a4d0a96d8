// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/eval/answer.hpp>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <optional>
#include <tuple>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <kvbench/compare/comparison.hpp>
#include <kvbench/core/ordered_map.hpp>
#include <kvbench/core/verdict.hpp>
#include <kvbench/evidence/test.hpp>
#include <kvbench/evidence/values.hpp>
#include <kvbench/methods/engines.hpp>
#include <kvbench/report/document/writers.hpp>
#include <kvbench/report/text/sentences.hpp>
#include <kvbench/report/text/text.hpp>

namespace kvbench::report {
namespace {

double kl_over_texts(const DamageOf& one) {
  return std::exp(one.mean_of([](const EvalRow& r) { return std::log(std::max(kl_of(r).mean, 1e-12)); }));
}

evidence::Values values_of(const DamageOf& one) {
  evidence::Values out{.mean = kl_over_texts(one)};
  for (const auto& [document, of_document] : one.kl)
    out.places.sums.push_back(of_document), out.places.counts.push_back(1);
  return out;
}

bool same_documents(const DamageOf& a, const DamageOf& b) {
  constexpr auto document = &decltype(DamageOf::kl)::value_type::first;
  return std::ranges::equal(a.kl, b.kl, {}, document, document);
}

bool is_damage_of_method(const EvalRow& r) {
  return r.ok() && !r.layer && r.turn == 0 && r.injection.mode == eval::Inject::all &&
         !compare::is_baseline(r.method) && std::isfinite(kl_of(r).mean);
}

/// The configurations with rows on every text that compressed the most layers.
std::vector<DamageOf> ranked(std::span<const RowsOfText> texts, const std::string& task, const Budget& budget) {
  OrderedMap<std::string, DamageOf> found;
  Index most = 0;
  for (const RowsOfText& rows : texts) {
    for (const EvalRow* r : rows) {
      if (r->task != task || r->budget != budget || !is_damage_of_method(*r)) continue;
      DamageOf& one = found[compare::label_of({r->method, r->params, {}})];
      if (r->over_documents()) {
        one.of_texts.push_back(r);
        most = std::max(most, r->common_layers());
      } else {
        one.kl[{static_cast<std::size_t>(&rows - texts.data()), r->document_sha256}] = kl_of(*r).mean;
      }
    }
  }
  std::vector<DamageOf> out;
  for (auto& [name, one] : found.items()) {
    const bool whole = std::ranges::all_of(one.of_texts, [&](auto* r) { return r->common_layers() == most; });
    if (one.of_texts.size() < texts.size() || !whole) continue;
    one.name = name;
    out.push_back(std::move(one));
  }
  return out;
}

/// The configurations of each task and budget.
std::vector<std::vector<DamageOf>> ranked_together(std::span<const RowsOfText> texts) {
  DistinctTexts tasks;
  Distinct<Budget> budgets;
  for (const RowsOfText& rows : texts) {
    for (const EvalRow* r : rows) tasks.add(r->task), budgets.add(r->budget);
  }
  std::vector<std::vector<DamageOf>> out;
  for (const std::string& task : tasks.list())
    for (const Budget& budget : budgets.list()) out.push_back(ranked(texts, task, budget));
  return out;
}

DamageStanding standing_of(std::vector<DamageOf> all, std::size_t texts) {
  const evidence::PlaceSample documents{.rows = "documents"};
  const evidence::Scale scale{.least = 1e-12};
  std::vector<evidence::Values> values;
  for (const DamageOf& one : all) values.push_back(values_of(one));
  std::vector<const evidence::Values*> group;
  for (const evidence::Values& one : values) group.push_back(&one);
  const evidence::Best best = best_of(group, documents, scale);
  std::vector<evidence::Pair> pairs;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const bool comparable = i != best.index && best.over_places && same_documents(all[i], all[best.index]);
    pairs.push_back({values[i], values[best.index], comparable ? std::optional(documents) : std::nullopt});
  }
  DamageStanding out{.over_documents = best.over_places};
  std::vector<evidence::Mark> marks;
  for (const evidence::Test& test : test_group(pairs, {.scale = scale})) {
    const std::size_t i = marks.size();
    marks.push_back({.name = all[i].name, .mean = values[i].mean, .ratio = test.effect, .interval = test.interval});
    if (best.over_places) marks[i].mean = std::exp(over_places(values[i], scale));
    if (test.over == evidence::Test::Over::nothing) continue;
    marks[i].tied = test.p_adjusted > decided_at;
    marks[i].tested_over = test.tested_over + (texts > 1 ? fmt::format(" of {} texts", texts) : "");
    out.factors.push_back(test.interval.hi / test.effect);
  }
  out.standing = evidence::standing_of(std::move(marks), best.index);
  out.all = std::move(all);
  return out;
}

}  // namespace

std::vector<DamageStanding> damage_standings(std::span<const RowsOfText> texts) {
  std::vector<DamageStanding> out;
  for (std::vector<DamageOf>& all : ranked_together(texts))
    if (all.size() >= 2) out.push_back(standing_of(std::move(all), texts.size()));
  return out;
}

namespace {

/// ", and 5 of 6 right answers (6 with the full cache)"
std::string answers_text(const DamageOf& one) {
  double answers = 0, right = 0, full = 0;
  for (const EvalRow* r : one.of_texts) {
    const auto count = static_cast<double>(r->answers);
    if (count > 0)
      answers += count, right += count * r->of(eval::damage("match")).mean,
          full += count * r->of(eval::damage("match_full")).mean;
  }
  if (answers == 0) return "";
  return fmt::format(", {:.4g} of {:.4g} answers right ({:.4g} with the full cache)", right, answers, full);
}

/// The figure about the most tokens of the answers that rows of documents that are continued have, and how many those
/// are.
std::optional<std::pair<eval::Damage, int>> alike_of(std::span<const EvalRow* const> rows) {
  constexpr std::pair<eval::Damage, int> longest_first[] = {
      {eval::damage("alike_256"), 256}, {eval::damage("alike_64"), 64}, {eval::damage("alike_32"), 32}};
  for (const auto& one : longest_first) {
    if (std::ranges::none_of(rows, [&](const EvalRow* r) { return std::isnan(r->of(one.first).mean); })) return one;
  }
  return std::nullopt;
}

/// ", 43 % of the first 64 tokens of its own answers"
std::string alike_text(const DamageOf& one) {
  const auto alike = alike_of(one.of_texts);
  if (!alike) return "";
  return fmt::format(", {:.3g} % of the first {} tokens of free answers",
                     100 * one.mean_of([&](const EvalRow& r) { return r.of(alike->first).mean; }), alike->second);
}

/// ", 90 % of their lines valid JSON (100 % with the full cache)"
std::string json_text(const DamageOf& one) {
  const auto percent = [&](eval::Damage figure) {
    return 100 * one.mean_of([&](const EvalRow& r) { return r.of(figure).mean; });
  };
  const double valid = percent(eval::damage("json"));
  if (std::isnan(valid)) return "";
  return fmt::format(", {:.3g} % of their lines valid JSON ({:.3g} % with the full cache)", valid,
                     percent(eval::damage("json_full")));
}

/// "perplexity x 1.1, the same most probable token in 88 % of the predictions"
std::string figures_text(const DamageOf& one) {
  const double perplexity = one.mean_of([](const EvalRow& r) { return r.of(eval::damage("nll_diff")).mean; });
  return fmt::format("perplexity x {:.3g}, the same most probable token in {:.3g} % of the predictions{}{}{}",
                     std::exp(perplexity),
                     100 * one.mean_of([](const EvalRow& r) { return r.of(eval::damage("top1")).mean; }),
                     alike_text(one), json_text(one), answers_text(one));
}

/// " 12 documents tell KL apart where it differs by a factor of about 1.5 or more.": the median over the methods of the
/// half width of the intervals.
std::string power_text(const DamageStanding& at) {
  if (at.factors.empty()) return "";
  return fmt::format(" {} documents tell KL apart where it differs by a factor of about {:.2g} or more.",
                     at.best().kl.size(), quantile(at.factors, 0.5));
}

/// " a has the lowest KL on 2 of 3 texts, b on 1."
std::string wins_sentence(const std::vector<DamageOf>& all, std::size_t texts) {
  if (texts < 2) return "";
  std::vector<std::pair<std::string, std::int64_t>> wins;
  for (const DamageOf& one : all) wins.emplace_back(one.name, 0);
  for (std::size_t text = 0; text < texts; ++text) {
    const auto kl = [&](const DamageOf& one) { return kl_of(*one.of_texts[text]).mean; };
    ++wins[static_cast<std::size_t>(std::ranges::min_element(all, {}, kl) - all.begin())].second;
  }
  return fmt::format(" {}.", wins_text("KL", std::move(wins), static_cast<std::int64_t>(texts)));
}

std::string damage_sentence(const DamageStanding& at, std::size_t texts) {
  const evidence::Standing& standing = at.standing;
  const DamageOf& best = at.best();
  const std::string rows = standing.tested() > 0 ? fmt::format("{} documents", best.kl.size()) : "these rows";
  const std::string kl =
      fmt::format("{}KL {}", at.over_documents ? "geometric mean " : "", short_number(standing.best.mean));
  const StandingWords words{
      .at = fmt::format("{} on the task {}", at_budget(best.of_texts.front()->budget), best.of_texts.front()->task),
      .is_best = "changes the output least",
      .quantity = "KL",
      .unit = "KL ",
      .best = kl,
      .figures = fmt::format("{} nats, {}", kl, figures_text(best)),
      .rows = rows,
      .needs = fmt::format("A test takes rows of at least {} documents (--per-document).", fewest_texts)};
  std::string out = standing_sentence(standing, words);
  if (const std::string untested = untested_sentence(standing, words); !untested.empty()) out += " " + untested;
  return out + power_text(at) + wins_sentence(at.all, texts);
}

/// What is known of a configuration that nothing can be compared with.
std::string lone_sentence(const DamageOf& one) {
  const EvalRow& row = *one.of_texts.front();
  const eval::Estimate kl = kl_of(row);
  const std::string figure = one.of_texts.size() == 1 ? interval_text(kl.mean, kl.lo, kl.hi)
                                                      : "(geometric mean) " + short_number(kl_over_texts(one));
  return fmt::format("{} on the task {}, {} has KL {} nats, {}; no other method was run there to compare it with.",
                     at_budget(row.budget), row.task, one.name, figure, figures_text(one));
}

/// How the context was read, where it is not read with exact attention; what this leaves out of the figures of formats
/// that llama.cpp runs; else "".
std::string context_note(std::span<const RowsOfText> texts) {
  const auto any = [&](auto has) {
    return std::ranges::any_of(texts, [&](const RowsOfText& rows) { return std::ranges::any_of(rows, has); });
  };
  const auto streams = [](const EvalRow* r) { return r->settings.protocol.stream; };
  if (any(streams)) return "The context passes through the compressed cache, too (--protocol stream).";
  if (!any([](const EvalRow* r) { return methods::runs_in(r->method, r->params).starts_with("llama.cpp"); })) return "";
  return "The context is exact here; llama.cpp reads it through its rounded cache, and KL is larger there "
         "(docs/eval.md says by how much; --protocol stream measures it).";
}

/// The methods that were calibrated on the context that they compress: the published ones are calibrated on another
/// text, which kveval does not have; else "".
std::string calibration_note(std::span<const RowsOfText> texts) {
  DistinctTexts names;
  for (const RowsOfText& rows : texts) {
    for (const EvalRow* r : rows) {
      if (is_damage_of_method(*r) && r->reason.find(replay::calibrated_on_evaluated) != std::string::npos)
        names.add(compare::label_of({r->method, r->params, {}}));
    }
  }
  if (names.list().empty()) return "";
  return fmt::format(
      "Calibrated on the context that they compress, not on another text as published, so that they may look better "
      "here: {}.",
      fmt::join(names.list(), ", "));
}

/// What answers are where documents are continued, and what a difference in precision alone does to them; else "".
std::string generation_note(std::span<const RowsOfText> texts) {
  DamageOf floor;
  bool continued = false;
  for (const RowsOfText& rows : texts) {
    for (const EvalRow* r : rows) {
      continued = continued || !r->settings.generate.empty();
      if (r->ok() && r->over_documents() && !r->layer && r->method == "exact" && r->params == "numbers=f16")
        floor.of_texts.push_back(r);
    }
  }
  if (!continued) return "";
  const auto alike = alike_of(floor.of_texts);
  const std::string precision =
      floor.of_texts.empty() || !alike
          ? " exact[numbers=f16] would show what a difference in precision alone does."
          : fmt::format(
                " A cache in 16 bits, a difference in precision alone, leaves {:.3g} % of the first {} tokens "
                "alike.",
                100 * floor.mean_of([&](const EvalRow& r) { return r.of(alike->first).mean; }), alike->second);
  return "Scored tokens are the full cache's own answers; free answers are those of the compressed cache by itself, "
         "alike where the full cache says the same at the same place." +
         precision;
}

}  // namespace

std::string setting_of(const EvalSection& s, const std::string& context) {
  const eval::EvalSettings& e = s.settings;
  return fmt::format("{}, {} tokens, question {}, {}, weights {}, cache {}, protected {}, decoded {}{}{}", s.model,
                     context, s.question, layers_text(e), e.weights, e.kv_dtype, e.protect, e.decoded,
                     e.protocol == eval::EvalProtocol() ? "" : ", protocol " + e.protocol.text(),
                     e.generate.empty() ? "" : ", generated " + e.generate);
}

std::vector<std::string> damage_answers(std::span<const RowsOfText> texts) {
  std::vector<std::string> out;
  for (std::vector<DamageOf>& all : ranked_together(texts)) {
    if (all.size() == 1) out.push_back(lone_sentence(all.front()));
    if (all.size() >= 2) out.push_back(damage_sentence(standing_of(std::move(all), texts.size()), texts.size()));
  }
  if (out.empty()) return out;
  for (std::string note : {context_note(texts), calibration_note(texts), generation_note(texts)})
    if (!note.empty()) out.push_back(std::move(note));
  return out;
}

std::vector<RowsOfText> TextsTogether::rows() const {
  std::vector<RowsOfText> out;
  for (const EvalSection* section : sections) out.push_back(rows_of(*section));
  return out;
}

RowsOfText rows_of(const EvalSection& section) {
  RowsOfText out;
  for (const EvalRow& row : section.rows) out.push_back(&row);
  return out;
}

std::vector<TextsTogether> texts_together(std::span<const EvalSection> sections) {
  OrderedMap<std::string, TextsTogether> settings;
  for (const EvalSection& section : sections) {
    auto& same = settings[setting_of(section, section.context)].sections;
    const auto has_text = [&](const EvalSection* known) { return known->text == section.text; };
    if (std::ranges::none_of(same, has_text)) same.push_back(&section);
  }
  std::vector<TextsTogether> out;
  for (auto& [setting, texts] : settings.items()) {
    if (texts.sections.size() < 2) continue;
    std::vector<std::string> names;
    for (const EvalSection* section : texts.sections) names.push_back(section->text);
    texts.scope = fmt::format("{} on {} together", texts.sections.front()->model, fmt::join(names, ", "));
    out.push_back(std::move(texts));
  }
  return out;
}

namespace {

/// Rows over all documents and layers, by task, injection, budget and KL; rows without results last.
std::vector<const EvalRow*> overall_records(std::span<const EvalRow> records) {
  std::vector<const EvalRow*> out;
  std::map<std::string, std::size_t> tasks;  // numbers in order of appearance
  std::map<Budget, std::size_t> budgets;
  for (const EvalRow& r : records) {
    tasks.emplace(r.task, tasks.size()), budgets.emplace(r.budget, budgets.size());
    if (r.over_documents() && !r.layer && r.turn == 0) out.push_back(&r);
  }
  std::ranges::stable_sort(out, {}, [&](const EvalRow* r) {
    const bool ok = r->ok();
    return std::tuple(r->context_tokens, tasks.at(r->task), r->injection, !ok, budgets.at(r->budget),
                      ok ? kl_of(*r).mean : 0);
  });
  return out;
}

std::string injection_text(const eval::Injection& injection) {
  return injection.layer < 0 ? std::string(name_of(injection.mode))
                             : fmt::format("{} {}", name_of(injection.mode), injection.layer);
}

auto mean_of(eval::Damage figure) {
  return [figure](const EvalRow& r) { return short_number(r.of(figure).mean); };
}

std::string match_text(const EvalRow& r) {
  const auto text = [&](eval::Damage figure, eval::Damage full) {
    return fmt::format("{} of {}", short_number(r.of(figure).mean), short_number(r.of(full).mean));
  };
  if (!std::isnan(r.of(eval::damage("json")).mean))
    return "JSON " + text(eval::damage("json"), eval::damage("json_full"));
  if (std::isnan(r.of(eval::damage("match")).mean)) return "-";
  return text(eval::damage("match"), eval::damage("match_full"));
}

/// The columns that a terminal shows, or those of them with these titles.
std::vector<RowColumn<EvalRow>> columns_of(std::span<const std::string_view> titles = {}) {
  std::vector<RowColumn<EvalRow>> columns = {
      {{"context", true}, &EvalRow::context_tokens},
      {{"task"}, &EvalRow::task},
      {{"method"},
       [](const EvalRow& r) { return r.params.empty() ? r.method : fmt::format("{} ({})", r.method, r.params); }},
      {{"inject"}, [](const EvalRow& r) { return injection_text(r.injection); }},
      {{"budget", true}, &EvalRow::budget},
      {{"bytes/full", true}, [](const EvalRow& r) { return short_number(r.held()); }},
      {{"KL", true}, mean_of(eval::damage("kl_mean"))},
      {{"95% interval", true}, [](const EvalRow& r) { return short_interval(kl_of(r).lo, kl_of(r).hi); }},
      {{"top-1", true}, mean_of(eval::damage("top1"))},
      {{"nll diff", true}, mean_of(eval::damage("nll_diff"))},
      {{"key nll diff", true}, mean_of(eval::damage("key_nll_diff"))},
      {{"match", true}, match_text},
      {{"verdict"}, [](const EvalRow& r) {
         for (const eval::Difference verdict : {r.match_verdict, r.json_verdict})
           if (verdict != eval::Difference::not_measured) return std::string(name_of(verdict));
         return std::string(name_of(r.nll_verdict));
       }}};
  if (titles.empty()) return columns;
  std::vector<RowColumn<EvalRow>> out;
  for (const std::string_view title : titles)
    out.push_back(*std::ranges::find(columns, title, [](const auto& column) { return column.head.title; }));
  return out;
}

}  // namespace

DocTable overall_table(std::span<const EvalRow> records) {
  const std::vector<const EvalRow*> rows = overall_records(records);
  const bool lengths =
      std::ranges::any_of(rows, [&](const EvalRow* r) { return r->context_tokens != rows.front()->context_tokens; });
  std::vector<RowColumn<EvalRow>> columns = columns_of();
  if (!lengths) columns.erase(columns.begin());
  const std::size_t names = lengths ? 5 : 4;  // columns of a row without results, before its reason
  DocTable table = filled<EvalRow>({}, columns, rows);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i]->ok()) continue;
    table.rows[i].resize(names);
    table.rows[i].emplace_back(fmt::format("{}: {}", name_of(rows[i]->status), rows[i]->reason));
  }
  return table;
}

std::vector<Block> brief_table(DocTable table, const std::string& meaning, const std::string& rest) {
  table.title.clear();
  const std::size_t all = table.rows.size();
  return shortened({std::move(table)}, [&](std::size_t shown) {
    std::vector<std::string> last = {meaning};
    if (all > shown) last.push_back(fmt::format("Not shown: {} of {} configurations; see {}.", all - shown, all, rest));
    return last;
  });
}

std::vector<Block> brief_evaluation(const std::vector<std::string>& answers, std::span<const EvalRow> records,
                                    const std::string& rest) {
  constexpr std::size_t most = 5;
  constexpr std::string_view titles[] = {"method", "KL", "95% interval", "top-1", "bytes/full"};
  std::vector<Block> blocks;
  for (const std::string& answer : answers) blocks.emplace_back(Paragraph{answer});
  const std::vector<const EvalRow*> rows = overall_records(records);
  std::vector<const EvalRow*> first;
  std::ranges::copy_if(rows, std::back_inserter(first), [&](const EvalRow* r) {
    return r->task == rows.front()->task && r->budget == rows.front()->budget && r->ok();
  });
  first.resize(std::min(first.size(), most));
  if (!first.empty())
    blocks.insert(blocks.begin() + (answers.empty() ? 0 : 1), filled<EvalRow>({}, columns_of(titles), first));
  return shortened(std::move(blocks), [&](std::size_t shown) {
    std::vector<std::string> last;
    if (rows.size() > shown)
      last.push_back(fmt::format("Not shown: {} of {} rows; see {}.", rows.size() - shown, rows.size(), rest));
    return last;
  });
}

}  // namespace kvbench::report
