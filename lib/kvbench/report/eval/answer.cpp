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
#include <kvbench/core/place_test.hpp>
#include <kvbench/report/text/sentences.hpp>
#include <kvbench/report/text/text.hpp>

namespace kvbench::report {
namespace {

using eval::EvalRecord;

/// A configuration at one budget on one task.
struct DamageOf {
  std::string name;
  std::vector<const EvalRecord*> of_texts;        ///< over all documents, one per text
  std::vector<std::map<std::string, double>> kl;  ///< by digest of the document, one map per text
  PlaceTest test;                                 ///< against the best, of log(KL / KL of the best)
  double adjusted = NAN;

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
};

bool is_damage_of_method(const EvalRecord& r) {
  return r.status == replay::Status::ok && !r.layer && r.injection.mode == eval::Inject::all &&
         !compare::is_baseline(r.method) && std::isfinite(r.of(eval::damage("kl_mean")).mean);
}

/// The configurations with rows on every text that compressed the most layers, in ascending order of KL.
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
        one.kl.resize(texts.size());
        one.kl[static_cast<std::size_t>(&rows - texts.data())][r->document_sha256] =
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
  std::ranges::stable_sort(out, {}, &DamageOf::kl_over_texts);
  return out;
}

/// Student's test over documents of log(KL / KL of the best); none where their documents differ.
PlaceTest over_documents(const DamageOf& one, const DamageOf& best) {
  std::vector<double> differences;
  if (one.kl.size() != best.kl.size()) return {};
  for (std::size_t text = 0; text < one.kl.size(); ++text) {
    if (!std::ranges::equal(one.kl[text], best.kl[text], {}, &std::pair<const std::string, double>::first,
                            &std::pair<const std::string, double>::first))
      return {};
    const auto is_exact = [](const auto& document) { return document.second == 0; };
    if (std::ranges::any_of(one.kl[text], is_exact) || std::ranges::any_of(best.kl[text], is_exact)) return {};
    for (const auto& [document, kl] : one.kl[text])
      differences.push_back(std::log(std::max(kl, 1e-12)) - std::log(std::max(best.kl[text].at(document), 1e-12)));
  }
  return differences.empty() ? PlaceTest{} : place_test(differences, 1, false);
}

void test_all(std::vector<DamageOf>& all) {
  std::vector<DamageOf*> tested;
  std::vector<double> p_values;
  for (DamageOf& one : std::span(all).subspan(1)) {
    one.test = over_documents(one, all.front());
    if (!one.test.tested()) continue;
    tested.push_back(&one);
    p_values.push_back(one.test.mean > 0 ? one.test.p_value : 1);
  }
  const std::vector<double> adjusted = holm(p_values);
  for (std::size_t i = 0; i < tested.size(); ++i) tested[i]->adjusted = adjusted[i];
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

/// "a (KL 0.01)"
std::string with_kl(const DamageOf& one) {
  return fmt::format("{} (KL {})", one.name, short_number(one.kl_over_texts()));
}

/// "KL 0.12 nats, perplexity x 1.1, the same most probable token in 88 % of the predictions"
std::string figures_text(const DamageOf& one) {
  const double perplexity = one.mean_of([](const EvalRecord& r) { return r.of(eval::damage("nll_diff")).mean; });
  return fmt::format("KL {} nats, perplexity x {:.3g}, the same most probable token in {:.3g} % of the predictions{}",
                     short_number(one.kl_over_texts()), std::exp(perplexity),
                     100 * one.mean_of([](const EvalRecord& r) { return r.of(eval::damage("top1")).mean; }),
                     answers_text(one));
}

/// " 12 documents tell KL apart where it differs by a factor of about 1.5 or more.": the median over the methods of the
/// half width of the intervals.
std::string power_text(const std::vector<DamageOf>& all) {
  std::vector<double> factors;
  for (const DamageOf& one : all) {
    if (one.test.tested()) factors.push_back(std::exp(one.test.interval.hi - one.test.mean));
  }
  if (factors.empty()) return "";
  return fmt::format(" {} documents tell KL apart where it differs by a factor of about {:.2g} or more.",
                     all.back().test.texts, quantile(factors, 0.5));
}

/// " It has the lowest KL on 2 of 3 texts, b on 1."
std::string wins_text(const std::vector<DamageOf>& all, std::size_t texts) {
  if (texts < 2) return "";
  std::map<std::string, int> wins;
  for (std::size_t text = 0; text < texts; ++text)
    ++wins[std::ranges::min_element(all, {}, [&](const DamageOf& one) {
             return one.of_texts[text]->of(eval::damage("kl_mean")).mean;
           })->name];
  std::vector<std::string> parts;
  for (const DamageOf& one : all) {
    if (const int count = wins[one.name]; count > 0)
      parts.push_back(parts.empty() ? fmt::format("{} has the lowest KL on {} of {} texts", one.name, count, texts)
                                    : fmt::format("{} on {}", one.name, count));
  }
  return fmt::format(" {}.", fmt::join(parts, ", "));
}

std::string damage_sentence(const std::vector<DamageOf>& all, std::size_t texts) {
  const DamageOf& best = all.front();
  std::vector<std::string> tied, untested;
  const DamageOf* next = nullptr;
  for (const DamageOf& one : std::span(all).subspan(1)) {
    if (std::isnan(one.adjusted))
      untested.push_back(with_kl(one));
    else if (one.adjusted > decided_at)
      tied.push_back(with_kl(one));
    else if (!next)
      next = &one;
  }
  const std::size_t documents = all.back().test.texts;
  std::string out =
      fmt::format("{} on the task {}, ", at_budget(best.of_texts.front()->budget), best.of_texts.front()->task);
  const bool none_tested = !next && tied.empty();
  if (none_tested) {
    untested.insert(untested.begin(), with_kl(best));
    out += fmt::format("these rows cannot tell which method changes the output least: {}", listed_up_to(untested));
  } else if (!next) {
    tied.insert(tied.begin(), with_kl(best));
    out += fmt::format("{} documents cannot tell which method changes the output least: {}", documents,
                       listed_up_to(tied));
  } else {
    out += fmt::format("{} changes the output least ({})", best.name, figures_text(best));
    if (!tied.empty()) out += fmt::format("; {} cannot be told from it", listed_up_to(tied));
  }
  if (next)
    out += fmt::format("; the next is {} with {:.3g} times the KL (95 % interval {} to {} over {} documents{})",
                       next->name, std::exp(next->test.mean), short_number(std::exp(next->test.interval.lo)),
                       short_number(std::exp(next->test.interval.hi)), documents,
                       texts > 1 ? fmt::format(" of {} texts", texts) : "");
  out += ".";
  if (!untested.empty())
    out += fmt::format(" {}; a test takes rows of at least {} documents (--per-document).",
                       none_tested ? "Nothing was tested" : "Not tested against it: " + listed_up_to(untested),
                       fewest_texts);
  return out + power_text(all) + wins_text(all, texts);
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
      std::vector<DamageOf> all = ranked(texts, task, budget);
      if (all.size() < 2) continue;
      test_all(all);
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
