// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/replay/answer.hpp>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <tuple>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <kvbench/compare/comparison.hpp>
#include <kvbench/compare/configuration_name.hpp>
#include <kvbench/compare/texts.hpp>
#include <kvbench/core/budget.hpp>
#include <kvbench/core/name.hpp>
#include <kvbench/core/ordered_map.hpp>
#include <kvbench/core/paired_test.hpp>
#include <kvbench/methods/registry.hpp>
#include <kvbench/report/replay/ranked_figure.hpp>
#include <kvbench/report/text/sentences.hpp>
#include <kvbench/report/text/text.hpp>

namespace kvbench::report {

std::string label(const replay::Record& r) { return compare::label_of({r.method, r.params, {}}); }

double error_of(const replay::Record& r) { return std::isnan(r.geomean) ? r.ranked_mean() : r.geomean; }

bool is_method(const replay::Record& r) {
  return r.status == replay::Status::ok && !r.dense && !compare::is_baseline(r.method) && !r.calibrated_on_itself() &&
         std::isfinite(error_of(r));
}

namespace {

using Rows = std::vector<const replay::Record*>;

/// The rows of a budget as mark_best() left them. Rows of files without a best row are all ranked by their errors.
evidence::Standing standing_of(const Rows& rows) {
  std::vector<evidence::Mark> marks;
  std::optional<std::size_t> best;
  for (const replay::Record* r : rows) {
    if (!best && r->best == label(*r)) best = marks.size();
    marks.push_back({.name = label(*r),
                     .mean = error_of(*r),
                     .ratio = r->ratio_best,
                     .interval = r->ratio_best_interval,
                     .tied = r->tied,
                     .compared = !r->best.empty(),
                     .tested_over = r->tested_over});
  }
  return evidence::standing_of(std::move(marks), best);
}

/// The mean of a prediction over texts with its interval, unless a table has them, and of which layers it is.
std::string prediction_text(const replay::Record& best, bool table) {
  const bool geometric = !std::isnan(best.geomean);
  const std::string& layers = best.kl.about;
  const std::string about = layers == "all layers" || layers.empty() ? "" : "; " + layers;
  const std::string mean = short_number(best.ranked_mean());
  const std::string_view unit = best.figure().unit;
  if (table)
    return fmt::format("{} {}{}", geometric ? "geometric mean over texts " + short_number(best.geomean) : mean, unit,
                       about);
  const Interval interval = best.figure().interval(best);
  return fmt::format(
      "{}{} {}{}{}", geometric ? fmt::format("geometric mean over texts {}, mean ", short_number(best.geomean)) : "",
      mean, unit,
      std::isnan(interval.lo)
          ? ""
          : fmt::format(", 95 % interval {} to {}", short_number(interval.lo), short_number(interval.hi)),
      about);
}

/// "geometric mean 0.1"
std::string best_text(const replay::Record& best, const evidence::Standing& s, bool table) {
  if (best.figure().is_prediction()) return prediction_text(best, table);
  const char* const of = !std::isnan(best.geomean) ? "geometric mean "
                         : best.figure().squares   ? "root mean square "
                                                   : "";
  return of + short_number(s.best.mean);
}

/// What a test of these rows would take.
std::string needs_text(const replay::Record& r, std::size_t others) {
  const std::size_t units = sign_flip_units(others * (others + 1) / 2);
  const char* seeds = "several seeds where a method draws at random";
  if (r.figure().is_prediction())
    return fmt::format("A test takes three texts, or at least {} probes, and {}.", units, seeds);
  return fmt::format("A test takes {}three texts, or at least {} blocks of {} neighbouring queries (here {}) and {}.",
                     r.figure().is_of_heads() ? "evenly spaced layers without errors of 0, " : "", units,
                     queries_per_block, r.blocks, seeds);
}

/// What the sentences about rows at a budget say beside the standing.
StandingWords words_of(const Rows& rows, const evidence::Standing& s, bool table) {
  const replay::Record& best = *rows[s.best.row];
  const replay::RankingFigure& figure = best.figure();
  StandingWords words{.at = at_budget(best.budget),
                      .is_best = fmt::format("has the lowest {}", figure.quantity),
                      .quantity = figure.quantity,
                      .unit = figure.symbol,
                      .best = best_text(best, s, table),
                      .table = table};
  words.figures = words.best;
  if (s.untested.empty()) return words;
  if (!std::isnan(best.geomean) && s.tested() > 0)
    words.needs = fmt::format("{} of 0 on {} has no ratio.", figure.is_prediction() ? "A prediction" : "An error",
                              figure.is_of_heads() ? "a layer of a text" : "a text");
  else
    words.needs = needs_text(*rows[s.untested.front().row], s.compared() - 1);
  return words;
}

/// The rows of a budget that cannot be predicted. Those of one layer are named together, the worst layer first.
std::string outside_note(const Rows& rows) {
  OrderedMap<std::string, std::vector<std::string>> by_layer;
  for (const replay::Record* r : rows)
    by_layer[std::string(r->outside().substr(0, r->outside().find(',')))].push_back(label(*r));
  std::vector<std::string> parts;
  for (const auto& [layer, names] : by_layer.items())
    parts.push_back(fmt::format("{} ({})", listed_up_to(names), layer));
  if (parts.empty()) return "";
  return fmt::format("Cannot be predicted, because the error of a layer is more than {} of the residual stream: {}.",
                     replay::largest_stream_error, fmt::join(parts, ", "));
}

/// The rows of a budget whose predictions are beyond their range, the smallest first.
std::string large_rows(Rows rows) {
  std::erase_if(rows, [](const replay::Record* r) { return !is_large(*r); });
  std::ranges::stable_sort(rows, {}, &replay::Record::ranked_mean);
  std::vector<std::string> names;
  for (const replay::Record* r : rows)
    names.push_back(fmt::format("{} ({})", label(*r), short_number(r->ranked_mean())));
  return listed_up_to(names);
}

std::string large_note(const BudgetAnswer& answer, const std::string& rows) {
  if (rows.empty()) return "";
  return fmt::format(
      "Above {} nats a prediction does not say how large the damage is, so that ranks there are uncertain: {}.",
      answer.ranked.front()->figure().largest, rows);
}

/// The large rows of all answers; with their budgets where these differ in them, or if they are to be named.
std::string large_rows(std::span<const BudgetAnswer> answers, bool named) {
  DistinctTexts lists;
  std::vector<std::string> parts;
  for (const BudgetAnswer& a : answers) {
    if (a.large.empty()) continue;
    lists.add(a.large);
    parts.push_back(fmt::format("{}{}at {} {}", a.trace, a.trace.empty() ? "" : " ", budget_words(a.budget), a.large));
  }
  return lists.list().size() == 1 && !named ? lists.list().front() : fmt::format("{}", fmt::join(parts, "; "));
}

/// A note of one answer, as one sentence of all answers that have such a note. Large rows are named of those with which
/// a page opens (main_budgets()), or of all others.
std::string note_of_all(std::span<const BudgetAnswer> answers, const BudgetAnswer& one, const std::string& note) {
  std::vector<Budget> budgets;
  for (const BudgetAnswer& a : answers) budgets.push_back(a.budget);
  const std::vector<Budget> main = main_budgets(budgets);
  const auto opens = [&](const BudgetAnswer& a) { return std::ranges::find(main, a.budget) != main.end(); };
  std::vector<BudgetAnswer> alike;
  std::ranges::copy_if(answers, std::back_inserter(alike),
                       [&](const BudgetAnswer& a) { return opens(a) == opens(one); });
  if (!note.empty() && note == large_note(one, one.large)) return large_note(one, large_rows(alike, !opens(one)));
  const bool needs = !one.needs.empty() && note.ends_with(one.needs);
  return needs ? note.substr(0, note.size() - one.needs.size()) + needs_of(answers) : note;
}

std::string elsewhere_note(const evidence::Standing& s) {
  if (s.elsewhere.empty()) return "";
  std::vector<std::string> names;
  for (const evidence::Mark& mark : s.elsewhere)
    names.push_back(fmt::format("{} ({})", mark.name, short_number(mark.mean)));
  return fmt::format(
      "Not ranked, because they stand in another table than {}, answered other layers, texts or queries, or are a part "
      "of a plan: {}.",
      s.best.name, listed_up_to(names));
}

/// The rows of a budget whose means a few huge errors determine.
std::string tail_note(const Rows& rows) {
  std::vector<std::string> names;
  for (const replay::Record* r : rows) {
    if (!r->figure().is_estimable(*r)) names.push_back(label(*r));
  }
  if (names.empty()) return "";
  return fmt::format(
      "The mean error of {} is not estimable from these queries: a few huge errors determine it. Compare medians.",
      listed(names));
}

/// Predictions of one kind are compared with those of another, of which one is too small (docs/damage.md).
std::string kinds_note(const Rows& rows) {
  const auto rounds = [](const replay::Record* r) { return methods::family_of(r->method) == "quantisation"; };
  const auto anchored = [](const replay::Record* r) {
    return r->kl.about.ends_with(" anchors") || r->kl.about.find(" anchors;") != std::string::npos;
  };
  if (!rows.front()->figure().is_prediction() || std::ranges::all_of(rows, rounds) ||
      std::ranges::none_of(rows, rounds) || std::ranges::any_of(rows, anchored))
    return "";
  return "Where tokens are dropped or merged, a predicted KL tends to be too small, by a factor of 1.3 to 3 on three "
         "models; where they are only rounded, it does not. Anchors in a trace (kvbench-dump-hf --anchors) correct it.";
}

/// The budgets with which rows cost the same: a limit of memory, and one of reads for methods that keep everything.
/// None where the budget is the whole context.
std::string equal_cost_hint(const Rows& rows, const Budget& budget) {
  const double context = rows.front()->context_tokens;
  const double part = budget.is_share() ? budget.share() : context > 0 ? rows.front()->budget_tokens / context : 0.25;
  if (part >= 1) return ".";
  const auto keeps_all = [](const replay::Record* r) { return !(r->bytes.of(CostKind::memory) < r->bytes.full); };
  const std::string share = fmt::format("{:.3g}%", 100 * part);
  const bool all = std::ranges::all_of(rows, keeps_all), any = std::ranges::any_of(rows, keeps_all);
  if (all) return fmt::format("; compare equal reads with --budget {}read.", share);
  return fmt::format("; compare equal memory with --budget {}mem{}.", share,
                     any ? fmt::format(", and methods that keep everything with --budget {}read", share) : "");
}

/// Where the rows of a budget differ in cost.
std::string cost_note(const Rows& rows) {
  const Budget& budget = rows.front()->budget;
  const bool reads = budget.cost() == CostKind::read;
  const auto cost = [&](const replay::Record* r) {
    return r->bytes.of(reads ? CostKind::read : CostKind::memory) / r->bytes.full;
  };
  const auto [least, most] = std::ranges::minmax_element(rows, {}, cost);
  if (!(cost(*most) > compare::equal_cost * cost(*least))) return "";
  std::string out = fmt::format("These rows do not cost the same: they {} from {} ({}) to {} ({}) of the full cache",
                                reads ? "read" : "hold", short_number(cost(*least)), label(**least),
                                short_number(cost(*most)), label(**most));
  return out + (budget.cost() ? "." : equal_cost_hint(rows, budget));
}

BudgetAnswer answer_at(const Rows& group, const Rows& outside, const std::vector<std::string>& wins) {
  evidence::Standing standing = standing_of(group);
  const StandingWords words = words_of(group, standing, false);
  BudgetAnswer out{.run = group.front()->run,
                   .trace = group.front()->trace,
                   .budget = group.front()->budget,
                   .standing = std::move(standing)};
  for (const evidence::Mark* mark : out.standing.ranked()) out.ranked.push_back(group[mark->row]);
  out.verdict = standing_sentence(out.standing, words);
  out.brief = standing_sentence(out.standing, words_of(group, out.standing, true));
  const std::string untested = untested_sentence(out.standing, words);
  const std::string elsewhere = elsewhere_note(out.standing);
  const std::string unpredicted = outside_note(outside);
  const std::string measure = unpredicted.empty()   ? ""
                              : outside.size() == 1 ? " Measure it in the model (kvbench eval)."
                                                    : " Measure them in the model (kvbench eval).";
  const bool nothing = out.standing.tested() == 0 && !untested.empty();
  if (nothing) out.needs = words.needs;
  out.large = large_rows(out.ranked);
  out.outside = outside;
  for (const std::string& note : {nothing ? untested : std::string(), elsewhere, unpredicted}) {
    if (!note.empty()) out.brief += ' ' + note;
  }
  for (const std::string& sentence : wins) {
    if (sentence.starts_with(words.at + ",")) out.notes.push_back(sentence);
  }
  for (const std::string& note : {untested, elsewhere, unpredicted + measure, family_note(out.ranked),
                                  tail_note(out.ranked), large_note(out, out.large), kinds_note(out.ranked)}) {
    if (!note.empty()) out.notes.push_back(note);
  }
  out.cost = cost_note(out.ranked);
  return out;
}

}  // namespace

std::string family_note(std::span<const replay::Record* const> ranked, std::size_t shown) {
  std::vector<std::string_view> families;
  std::vector<std::string> best;
  for (std::size_t i = 0; i < ranked.size(); ++i) {
    const replay::Record& r = *ranked[i];
    const std::string_view family = methods::family_of(r.method);
    if (std::ranges::find(families, family) != families.end()) continue;
    families.push_back(family);
    if (i >= shown)
      best.push_back(fmt::format("{} {} ({}{})", family, label(r), mark_of(r), short_number(error_of(r))));
  }
  if (families.size() < 2 || best.empty()) return "";
  return fmt::format("The lowest {} of each {}family: {}.", ranked.front()->figure().quantity,
                     shown == 0 ? "" : "other ", fmt::join(best, ", "));
}

std::vector<BudgetAnswer> budget_answers(std::span<const replay::Record> rows,
                                         std::span<const replay::Record> of_texts) {
  const std::vector<std::string> wins = wins_of(of_texts);
  OrderedMap<std::tuple<std::string, std::string, replay::Protocol, Budget>, std::pair<Rows, Rows>> groups;
  for (const replay::Record& r : rows) {
    auto& [ranked, outside] = groups[{r.run, r.sha256, r.protocol, r.budget}];
    if (is_method(r)) (r.is_outside() ? outside : ranked).push_back(&r);
  }
  const auto several = [&](std::string replay::Record::*of) {
    return std::ranges::any_of(rows, [&](const replay::Record& r) { return r.*of != rows.front().*of; });
  };
  const bool traces = several(&replay::Record::sha256), runs = several(&replay::Record::run);
  std::vector<BudgetAnswer> out;
  for (auto& [key, rows_of_budget] : groups.items()) {
    const auto& [group, outside] = rows_of_budget;
    if (group.size() < 2) continue;
    BudgetAnswer& answer = out.emplace_back(answer_at(group, outside, wins));
    if (!traces) answer.trace.clear();
    if (!runs) answer.run.clear();
  }
  return out;
}

std::string needs_of(std::span<const BudgetAnswer> answers) {
  OrderedMap<std::string, std::vector<std::string>> alike;
  for (const BudgetAnswer& a : answers) {
    if (!a.needs.empty()) alike[without_numbers(a.needs)].push_back(a.needs);
  }
  std::vector<std::string> out;
  for (const auto& [words, sentences] : alike.items()) out.push_back(with_ranges(sentences));
  return fmt::format("{}", fmt::join(out, " "));
}

std::vector<std::string> calibrated_on_themselves(std::span<const replay::Record> rows) {
  DistinctTexts names;
  for (const replay::Record& r : rows) {
    if (r.status == replay::Status::ok && r.calibrated_on_itself()) names.add(label(r));
  }
  return names.list();
}

std::vector<std::string> answers_of(std::span<const replay::Record> rows, std::span<const replay::Record> of_texts,
                                    Notes notes) {
  const std::vector<BudgetAnswer> answers = budget_answers(rows, of_texts);
  const auto verdict_of = [](const BudgetAnswer& a) { return (a.trace.empty() ? "" : a.trace + ": ") + a.verdict; };
  DistinctTexts out;
  for (std::size_t i = 0; notes == Notes::last && i < answers.size(); ++i) {
    out.add(verdict_of(answers[i]));
    if (!answers[i].cost.empty()) out.add(answers[i].cost);
  }
  for (const BudgetAnswer& answer : answers) {
    out.add(verdict_of(answer));
    for (const std::string& note : answer.notes)
      out.add(notes == Notes::last ? note_of_all(answers, answer, note) : note);
    if (!answer.cost.empty()) out.add(answer.cost);
  }
  if (const std::vector<std::string> names = calibrated_on_themselves(rows); !names.empty())
    out.add(fmt::format("Not ranked, because the published method is calibrated on another text (--calibrate): {}.",
                        listed(names)));
  return out.list();
}

std::vector<std::string> wins_of(std::span<const replay::Record> records) {
  const std::vector<compare::TextSummary> texts = compare::summarize_texts(records);
  std::vector<std::string> out;
  for (std::size_t first = 0; first < texts.size();) {
    std::vector<std::pair<std::string, std::int64_t>> wins;
    std::size_t next = first;
    for (; next < texts.size() && texts[next].budget == texts[first].budget; ++next)
      wins.emplace_back(compare::label_of({texts[next].method, texts[next].params, {}}), texts[next].wins);
    if (wins.size() > 1)
      out.push_back(
          fmt::format("{}, {}.", at_budget(texts[first].budget),
                      wins_text(figure_of(texts[first].figure).quantity, std::move(wins), texts[first].texts)));
    first = next;
  }
  return out;
}

std::string layers_of(std::span<const replay::Record> rows) {
  const replay::Record* first = nullptr;
  for (const replay::Record& r : rows) {
    if (r.status != replay::Status::ok || r.dense) continue;
    if (first == nullptr) first = &r;
    if (r.compressed_layers != first->compressed_layers || r.model_layers != first->model_layers) return "";
  }
  if (first == nullptr || first->model_layers == 0) return "";
  const std::vector<std::int64_t>& layers = first->compressed_layers;
  if (std::ssize(layers) == first->model_layers)
    return layers.size() == 1 ? "The only layer." : fmt::format("All {} layers.", first->model_layers);
  const std::size_t whole = first->layers.size() - layers.size();
  return fmt::format("Layer{} {} of {}{}.", layers.size() == 1 ? "" : "s", fmt::join(layers, ", "), first->model_layers,
                     whole == 0 ? "" : fmt::format("; {} more kept whole", whole));
}

}  // namespace kvbench::report
