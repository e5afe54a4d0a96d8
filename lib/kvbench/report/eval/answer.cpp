// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/eval/answer.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <kvbench/compare/comparison.hpp>
#include <kvbench/core/ordered_map.hpp>
#include <kvbench/core/verdict.hpp>
#include <kvbench/evidence/standing.hpp>
#include <kvbench/evidence/test.hpp>
#include <kvbench/report/text/sentences.hpp>
#include <kvbench/report/text/standing.hpp>
#include <kvbench/report/text/text.hpp>

namespace kvbench::report {
namespace {

using eval::EvalRecord;

/// A configuration at one budget on one task.
struct DamageOf {
  std::string name;
  std::vector<const EvalRecord*> of_texts;                   ///< over all documents, one per text
  std::map<std::pair<std::size_t, std::string>, double> kl;  ///< by text and digest of the document

  template <class F>
  double mean_of(F value) const {
    std::vector<double> values;
    for (const EvalRecord* r : of_texts) values.push_back(value(*r));
    return mean(values);
  }
  double kl_over_texts() const {
    return std::exp(
        mean_of([](const EvalRecord& r) { return std::log(std::max(r.of(eval::damage("kl_mean")).mean, 1e-12)); }));
  }
  evidence::Values values() const {
    evidence::Values out{.mean = kl_over_texts()};
    for (const auto& [document, of_document] : kl)
      out.places.sums.push_back(of_document), out.places.counts.push_back(1);
    return out;
  }
  bool same_documents(const DamageOf& other) const {
    constexpr auto document = &decltype(kl)::value_type::first;
    return std::ranges::equal(kl, other.kl, {}, document, document);
  }
};

bool is_damage_of_method(const EvalRecord& r) {
  return r.status == replay::Status::ok && !r.layer && r.injection.mode == eval::Inject::all &&
         !compare::is_baseline(r.method) && std::isfinite(r.of(eval::damage("kl_mean")).mean);
}

/// The configurations with rows on every text that compressed the most layers.
std::vector<DamageOf> ranked(std::span<const RowsOfText> texts, const std::string& task, const Budget& budget) {
  OrderedMap<std::string, DamageOf> found;
  Index most = 0;
  for (const RowsOfText& rows : texts) {
    for (const EvalRecord* r : rows) {
      if (r->task != task || r->budget != budget || !is_damage_of_method(*r)) continue;
      DamageOf& one = found[compare::label_of({r->method, r->params, {}})];
      if (r->document == "all") {
        one.of_texts.push_back(r);
        most = std::max(most, r->compressed_layers);
      } else {
        one.kl[{static_cast<std::size_t>(&rows - texts.data()), r->document_sha256}] =
            r->of(eval::damage("kl_mean")).mean;
      }
    }
  }
  std::vector<DamageOf> out;
  for (auto& [name, one] : found.items()) {
    const bool whole = std::ranges::all_of(one.of_texts, [&](auto* r) { return r->compressed_layers == most; });
    if (one.of_texts.size() < texts.size() || !whole) continue;
    one.name = name;
    out.push_back(std::move(one));
  }
  return out;
}

/// Where the configurations stand. By what is tested: the geometric mean over documents, where there are rows of them.
struct Tested {
  evidence::Standing standing;
  bool over_documents = false;
  std::vector<double> factors;  ///< by which KL must differ from that of the best to be told from it
};

Tested tested(const std::vector<DamageOf>& all, std::size_t texts) {
  const evidence::PlaceSample documents{.rows = "documents"};
  const evidence::Scale scale{.least = 1e-12};
  std::vector<evidence::Values> values;
  for (const DamageOf& one : all) values.push_back(one.values());
  std::vector<const evidence::Values*> group;
  for (const evidence::Values& one : values) group.push_back(&one);
  const evidence::Best best = best_of(group, documents, scale);
  std::vector<evidence::Pair> pairs;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const bool comparable = i != best.index && best.over_places && all[i].same_documents(all[best.index]);
    pairs.push_back({values[i], values[best.index], comparable ? std::optional(documents) : std::nullopt});
  }
  Tested out{.standing = {}, .over_documents = best.over_places, .factors = {}};
  std::vector<evidence::Mark> marks;
  for (const evidence::Test& test : test_group(pairs, {.scale = scale})) {
    const std::size_t i = marks.size();
    marks.push_back({.name = all[i].name, .mean = values[i].mean, .ratio = test.effect, .interval = test.interval});
    if (i == best.index && best.over_places) marks[i].mean = std::exp(over_places(values[i], scale));
    if (test.over == evidence::Test::Over::nothing) continue;
    marks[i].tied = test.p_adjusted > decided_at;
    marks[i].tested_over = test.tested_over + (texts > 1 ? fmt::format(" of {} texts", texts) : "");
    out.factors.push_back(test.interval.hi / test.effect);
  }
  out.standing = standing_of(std::move(marks), best.index);
  return out;
}

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
std::string power_text(const Tested& tested, std::size_t documents) {
  if (tested.factors.empty()) return "";
  return fmt::format(" {} documents tell KL apart where it differs by a factor of about {:.2g} or more.", documents,
                     quantile(tested.factors, 0.5));
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
  return fmt::format(" {}.", wins_text("KL", wins, static_cast<std::int64_t>(texts)));
}

std::string damage_sentence(const std::vector<DamageOf>& all, std::size_t texts) {
  const Tested tested = report::tested(all, texts);
  const evidence::Standing& standing = tested.standing;
  const DamageOf& best = all[standing.best.row];
  const std::size_t documents = best.kl.size();
  const std::string rows = standing.tested() > 0 ? fmt::format("{} documents", documents) : "these rows";
  const std::string kl =
      fmt::format("{}KL {}", tested.over_documents ? "geometric mean " : "", short_number(standing.best.mean));
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
  return out + power_text(tested, documents) + wins_sentence(all, texts);
}

/// What sections over several texts have in common.
std::string setting_of(const EvalSection& s) {
  const eval::EvalSettings& e = s.settings;
  return fmt::format("{}, {} tokens, question {}, {}, weights {}, cache {}, protected {}, decoded {}", s.model,
                     s.context, s.question, layers_text(e), e.weights, e.kv_dtype, e.protect, e.decoded);
}

}  // namespace

std::vector<std::string> damage_answers(std::span<const RowsOfText> texts) {
  DistinctTexts tasks;
  Distinct<Budget> budgets;
  for (const RowsOfText& rows : texts) {
    for (const EvalRecord* r : rows) tasks.add(r->task), budgets.add(r->budget);
  }
  std::vector<std::string> out;
  for (const std::string& task : tasks.list()) {
    for (const Budget& budget : budgets.list()) {
      const std::vector<DamageOf> all = ranked(texts, task, budget);
      if (all.size() < 2) continue;
      out.push_back(damage_sentence(all, texts.size()));
    }
  }
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
  std::vector<RowsOfText> rows;
  for (const EvalSection* section : texts.sections) rows.push_back(rows_of(*section));
  AnswerBlock answer{texts.scope, damage_answers(rows)};
  if (answer.sentences.empty() || predictions.metrics.empty()) return answer;
  for (std::string& sentence : prediction_sentences(predictions)) answer.sentences.push_back(std::move(sentence));
  return answer;
}

}  // namespace kvbench::report
