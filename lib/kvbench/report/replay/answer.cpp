// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/replay/answer.hpp>

#include <algorithm>
#include <cmath>
#include <tuple>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <kvbench/compare/comparison.hpp>
#include <kvbench/compare/configuration_name.hpp>
#include <kvbench/compare/texts.hpp>
#include <kvbench/core/budget.hpp>
#include <kvbench/core/ordered_map.hpp>
#include <kvbench/core/suggest.hpp>
#include <kvbench/methods/registry.hpp>
#include <kvbench/report/text/sentences.hpp>
#include <kvbench/report/text/text.hpp>

namespace kvbench::report {

std::string label(const replay::Record& r) { return compare::label_of({r.method, r.params, {}}); }

double error_of(const replay::Record& r) { return r.of(replay::metric("rel_err")).mean; }

namespace {

bool is_ranked(const replay::Record& r) {
  return r.status == replay::Status::ok && !r.dense && !compare::is_baseline(r.method) && !r.has_hindsight() &&
         std::isfinite(error_of(r));
}

using Rows = std::vector<const replay::Record*>;

std::string with_error(const replay::Record& r) { return fmt::format("{} ({})", label(r), short_number(error_of(r))); }

/// The rows of a budget by what a test said of them: one of the lists below, or `best`.
struct Standing {
  const replay::Record* best = nullptr;
  Rows worse, tied, untested;
  Rows elsewhere;  ///< answered other queries than the best, as on fewer texts: means over them are not comparable
};

/// `rows` in ascending order of the error. Rows of files without a best row are all ranked by their errors.
Standing standing_of(const Rows& rows) {
  const auto is_best = [](const replay::Record* r) { return r->best == label(*r); };
  const bool compared = std::ranges::any_of(rows, is_best);
  Standing out{.best = compared ? *std::ranges::find_if(rows, is_best) : rows.front()};
  for (const replay::Record* r : rows) {
    if (r == out.best) continue;
    Rows& list = compared && r->best.empty() ? out.elsewhere
                 : compared && !r->tied      ? out.untested
                 : r->tied.value_or(false)   ? out.tied
                                             : out.worse;
    list.push_back(r);
  }
  return out;
}

std::vector<std::string> with_errors(const Rows& rows) {
  std::vector<std::string> names;
  for (const replay::Record* r : rows) names.push_back(with_error(*r));
  return names;
}

/// "; the next is a with 1.4 times the error (95 % interval 1.2 to 1.6)"
std::string next_text(const Standing& s) {
  if (s.worse.empty()) return "";
  const replay::Record& next = *s.worse.front();
  if (error_of(*s.best) == 0) return "; the next is " + with_error(next);
  const bool over_places = !std::isnan(next.ratio_best);
  std::string out = fmt::format("; the next is {} with {:.3g} times the error", label(next),
                                over_places ? next.ratio_best : error_of(next) / error_of(*s.best));
  if (over_places)
    out += fmt::format(" (95 % interval {} to {})", short_number(next.ratio_best_interval.lo),
                       short_number(next.ratio_best_interval.hi));
  return out;
}

/// Over what the rows were tested, and how far that carries.
std::string tested_text(const Standing& s) {
  const Rows& rows = s.worse.empty() ? s.tied : s.worse;
  if (rows.empty() || rows.front()->tested_over.empty()) return "";
  const std::string& units = rows.front()->tested_over;
  const bool blocks = units.ends_with("queries"), texts = units.ends_with("texts");
  const bool few = units == "3 texts" || units == "4 texts";  // and all layers
  return fmt::format(" Tested over {}{}.", units,
                     blocks   ? ", for the replayed layers and texts alone"
                     : !texts ? ", for the replayed texts alone"
                     : few    ? ", which leave much undecided; five texts or more decide most"
                              : "");
}

std::string verdict(const Standing& s) {
  const std::string at = at_budget(s.best->budget);
  const bool none_tested = s.tied.empty() && !s.untested.empty();
  if (s.worse.empty() && (!s.tied.empty() || none_tested)) {
    Rows all = none_tested ? s.untested : s.tied;
    all.insert(all.begin(), s.best);
    return fmt::format("{}, this trace cannot tell which method has the lowest error: {}.{}", at,
                       listed_up_to(with_errors(all)), tested_text(s));
  }
  std::string out =
      fmt::format("{}, {} has the lowest error ({})", at, label(*s.best), short_number(error_of(*s.best)));
  if (!s.tied.empty()) out += fmt::format("; {} cannot be told from it", listed_up_to(with_errors(s.tied)));
  return out + next_text(s) + "." + tested_text(s);
}

/// Rows that were not tested against the best, and why.
std::string untested_note(const Standing& s) {
  std::string out;
  if (!s.untested.empty()) {
    const std::size_t tested = s.tied.size() + s.worse.size(), compared = s.untested.size() + tested;
    const std::string what =
        tested == 0 ? "Nothing was tested" : "Not tested against it: " + listed_up_to(with_errors(s.untested));
    out = fmt::format(
        "{}. A test takes evenly spaced layers, three texts, or at least {} blocks of {} neighbouring queries (here "
        "{}) "
        "and several seeds where a method draws at random.",
        what, sign_flip_units(compared * (compared + 1) / 2), queries_per_block, s.untested.front()->blocks);
  }
  if (s.elsewhere.empty()) return out;
  return fmt::format(
      "{}{}Not ranked, because they stand in another table than {}, or answered other layers, texts or queries: {}.",
      out, out.empty() ? "" : " ", label(*s.best), listed_up_to(with_errors(s.elsewhere)));
}

/// The rows of a budget whose means a few huge errors determine.
std::string tail_note(const Rows& rows) {
  std::vector<std::string> names;
  for (const replay::Record* r : rows) {
    if (!r->of(replay::metric("rel_err")).mean_is_estimable()) names.push_back(label(*r));
  }
  if (names.empty()) return "";
  return fmt::format(
      "The mean error of {} is not estimable from these queries: a few huge errors determine it. Compare medians.",
      listed(names));
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

/// The rows that are not ranked because they were calibrated on what they are evaluated on.
std::string own_calibration_note(std::span<const replay::Record> rows) {
  std::vector<std::string> names;
  for (const replay::Record& r : rows) {
    if (r.status == replay::Status::ok && r.calibrated_on_itself() && std::ranges::find(names, label(r)) == names.end())
      names.push_back(label(r));
  }
  if (names.empty()) return "";
  return fmt::format("Not ranked, because calibrated on the evaluated context (--calibrate names another): {}.",
                     listed(names));
}

BudgetAnswer answer_at(Rows group, const std::vector<std::string>& wins) {
  std::ranges::stable_sort(group, {}, [](const replay::Record* r) { return error_of(*r); });
  const Standing standing = standing_of(group);
  const replay::Record& first = *group.front();
  BudgetAnswer out{.run = first.run,
                   .trace = first.trace,
                   .budget = first.budget,
                   .ranked = {},
                   .tied = standing.tied,
                   .next = standing.worse.empty() ? nullptr : standing.worse.front(),
                   .verdict = verdict(standing),
                   .notes = {},
                   .cost = ""};
  for (const std::string& sentence : wins) {
    if (sentence.starts_with(at_budget(first.budget) + ",")) out.notes.push_back(sentence);
  }
  std::erase_if(group, [&](const replay::Record* r) { return std::ranges::count(standing.elsewhere, r) > 0; });
  for (const std::string& note : {untested_note(standing), family_note(group), tail_note(group)}) {
    if (!note.empty()) out.notes.push_back(note);
  }
  out.cost = cost_note(group);
  std::ranges::stable_partition(group, [&](const replay::Record* r) { return r == standing.best; });
  out.ranked = std::move(group);
  return out;
}

}  // namespace

std::string family_note(std::span<const replay::Record* const> ranked) {
  std::vector<std::string> families, best;
  for (const replay::Record* r : ranked) {
    const std::string family(methods::family_of(r->method));
    if (std::ranges::find(families, family) != families.end()) continue;
    families.push_back(family);
    best.push_back(fmt::format("{} {} ({})", family, label(*r), short_number(error_of(*r))));
  }
  return families.size() < 2 ? "" : fmt::format("The lowest error of each family: {}.", fmt::join(best, ", "));
}

std::vector<BudgetAnswer> budget_answers(std::span<const replay::Record> rows,
                                         std::span<const replay::Record> of_texts) {
  const std::vector<std::string> wins = wins_of(of_texts);
  OrderedMap<std::tuple<std::string, std::string, replay::Protocol, Budget>, Rows> groups;
  for (const replay::Record& r : rows) {
    if (is_ranked(r)) groups[{r.run, r.sha256, r.protocol, r.budget}].push_back(&r);
  }
  const auto several = [&](std::string replay::Record::*of) {
    return std::ranges::any_of(rows, [&](const replay::Record& r) { return r.*of != rows.front().*of; });
  };
  const bool traces = several(&replay::Record::sha256), runs = several(&replay::Record::run);
  std::vector<BudgetAnswer> out;
  for (auto& [key, group] : groups.items()) {
    if (group.size() < 2) continue;
    BudgetAnswer& answer = out.emplace_back(answer_at(std::move(group), wins));
    if (!traces) answer.trace.clear();
    if (!runs) answer.run.clear();
  }
  return out;
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
    for (const std::string& note : answer.notes) out.add(note);
    if (!answer.cost.empty()) out.add(answer.cost);
  }
  if (const std::string note = own_calibration_note(rows); !note.empty()) out.add(note);
  return out.list();
}

std::vector<std::string> wins_of(std::span<const replay::Record> records) {
  const std::vector<compare::TextSummary> texts = compare::summarize_texts(records);
  std::vector<std::string> out;
  for (std::size_t first = 0; first < texts.size();) {
    std::vector<std::string> winners;
    std::size_t next = first;
    for (; next < texts.size() && texts[next].budget == texts[first].budget; ++next) {
      const compare::TextSummary& t = texts[next];
      if (t.wins == 0) continue;
      const std::string name = compare::label_of({t.method, t.params, {}});
      winners.push_back(winners.empty()
                            ? fmt::format("{} has the lowest error on {} of {} texts", name, t.wins, t.texts)
                            : fmt::format("{} on {}", name, t.wins));
    }
    if (next - first > 1)
      out.push_back(fmt::format("{}, {}.", at_budget(texts[first].budget), fmt::join(winners, ", ")));
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
  if (std::ssize(layers) == first->model_layers) return fmt::format("All {} layers.", first->model_layers);
  const std::size_t whole = first->layers.size() - layers.size();
  return fmt::format("Layer{} {} of {}{}.", layers.size() == 1 ? "" : "s", fmt::join(layers, ", "), first->model_layers,
                     whole == 0 ? "" : fmt::format("; {} more kept whole", whole));
}

}  // namespace kvbench::report
