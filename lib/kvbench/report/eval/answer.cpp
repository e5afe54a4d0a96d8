// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/eval/answer.hpp>

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <kvbench/compare/comparison.hpp>
#include <kvbench/core/ordered_map.hpp>
#include <kvbench/methods/engines.hpp>
#include <kvbench/report/text/sentences.hpp>
#include <kvbench/report/text/standing.hpp>
#include <kvbench/report/text/text.hpp>

namespace kvbench::report {
namespace {

using eval::EvalRecord;

/// ", and 5 of 6 right answers (6 with the full cache)"
std::string answers_text(const DamageOf& one) {
  double answers = 0, right = 0, full = 0;
  for (const EvalRecord* r : one.of_texts) {
    const auto count = static_cast<double>(r->answers);
    if (count > 0)
      answers += count, right += count * r->of(eval::damage("match")).mean,
          full += count * r->of(eval::damage("match_full")).mean;
  }
  if (answers == 0) return "";
  return fmt::format(", {:.4g} of {:.4g} answers right ({:.4g} with the full cache)", right, answers, full);
}

/// "perplexity x 1.1, the same most probable token in 88 % of the predictions"
std::string figures_text(const DamageOf& one) {
  const double perplexity = one.mean_of([](const EvalRecord& r) { return r.of(eval::damage("nll_diff")).mean; });
  return fmt::format(
      "perplexity x {:.3g}, the same most probable token in {:.3g} % of the predictions{}", std::exp(perplexity),
      100 * one.mean_of([](const EvalRecord& r) { return r.of(eval::damage("top1")).mean; }), answers_text(one));
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
    const auto kl = [&](const DamageOf& one) { return one.of_texts[text]->of(eval::damage("kl_mean")).mean; };
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

/// What the figures of formats that llama.cpp runs leave out; "" where no row has one.
std::string llama_cpp_note(std::span<const RowsOfText> texts) {
  const auto runs_there = [](const EvalRecord* r) {
    return methods::runs_in(r->method, r->params).starts_with("llama.cpp");
  };
  const auto has_one = [&](const RowsOfText& rows) { return std::ranges::any_of(rows, runs_there); };
  if (std::ranges::none_of(texts, has_one)) return "";
  return "The context is exact here; llama.cpp reads it through its rounded cache, and KL is larger there "
         "(docs/eval.md says by how much).";
}

/// What sections over several texts have in common.
std::string setting_of(const EvalSection& s) {
  const eval::EvalSettings& e = s.settings;
  return fmt::format("{}, {} tokens, question {}, {}, weights {}, cache {}, protected {}, decoded {}", s.model,
                     s.context, s.question, layers_text(e), e.weights, e.kv_dtype, e.protect, e.decoded);
}

}  // namespace

std::vector<std::string> damage_answers(std::span<const RowsOfText> texts) {
  std::vector<std::string> out;
  for (const DamageStanding& at : damage_standings(texts)) out.push_back(damage_sentence(at, texts.size()));
  if (std::string note = llama_cpp_note(texts); !out.empty() && !note.empty()) out.push_back(std::move(note));
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
    auto& same = settings[setting_of(section)].sections;
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

AnswerBlock answer_over_texts(const TextsTogether& texts, const Predictions& predictions) {
  AnswerBlock answer{texts.scope, damage_answers(texts.rows())};
  if (answer.sentences.empty() || predictions.metrics.empty()) return answer;
  for (std::string& sentence : prediction_sentences(predictions)) answer.sentences.push_back(std::move(sentence));
  return answer;
}

}  // namespace kvbench::report
