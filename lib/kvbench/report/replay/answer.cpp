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
#include <kvbench/report/text/budget_words.hpp>
#include <kvbench/report/text/text.hpp>

namespace kvbench::report {
namespace {

std::string label(const replay::Record& r) { return compare::label_of({r.method, r.params, {}}); }

double error_of(const replay::Record& r) { return r.of(replay::metric("rel_err")).mean; }

bool is_ranked(const replay::Record& r) {
  return r.status == replay::Status::ok && !r.dense && !compare::is_baseline(r.method) && !r.has_hindsight() &&
         std::isfinite(error_of(r));
}

std::string budget_text(const std::string& text) {
  const Budget budget = Budget::parse(text);
  if (budget.cost() == CostKind::read) return fmt::format("Reading {:.4g} % of the bytes", 100 * budget.share());
  return (budget.is_share() ? "At " : "At a budget of ") + budget_words(text);
}

/// The rows of a budget in ascending order of the error.
std::string verdict(const std::vector<const replay::Record*>& rows) {
  std::vector<std::string> tied, untested;
  const bool tests = std::ranges::any_of(rows, [](const replay::Record* r) { return !r->best.empty(); });
  const replay::Record* next = nullptr;
  for (const replay::Record* r : rows) {
    if (r == rows.front()) continue;
    if (r->tied.value_or(false)) {
      tied.push_back(label(*r));
    } else if (tests && r->best.empty()) {
      untested.push_back(label(*r));
    } else if (next == nullptr) {
      next = r;
    }
  }
  const replay::Record& best = *rows.front();
  std::string out = fmt::format("{}, {} has the lowest error ({})", budget_text(best.budget), label(best),
                                short_number(error_of(best)));
  if (!tied.empty()) out += fmt::format("; not distinguishable from it: {}", listed(tied));
  if (!untested.empty()) out += fmt::format("; not tested against it: {}", listed(untested));
  if (next == nullptr) return out + ".";
  return out +
         fmt::format("; the next is {} with {:.3g} times the error.", label(*next), error_of(*next) / error_of(best));
}

/// The best of each family (methods::family_of), where there are several. `rows` as in verdict().
std::string family_note(const std::vector<const replay::Record*>& rows) {
  std::vector<std::string> families, best;
  for (const replay::Record* r : rows) {
    const std::string family(methods::family_of(r->method));
    if (std::ranges::find(families, family) != families.end()) continue;
    families.push_back(family);
    best.push_back(fmt::format("{} {} ({})", family, label(*r), short_number(error_of(*r))));
  }
  return families.size() < 2 ? "" : fmt::format("The lowest error of each family: {}.", fmt::join(best, ", "));
}

/// Where so few queries were evaluated that no difference can be significant: best has been set, and no other row has a
/// mark.
std::string few_blocks_note(const std::vector<const replay::Record*>& rows) {
  const auto tested = [](const replay::Record* r) { return !r->best.empty() && r->best != label(*r); };
  const auto first = std::ranges::find_if(rows, tested);
  const bool marked = std::ranges::any_of(rows, [&](const replay::Record* r) { return tested(r) && r->tied; });
  if (first == rows.end() || marked) return "";
  return fmt::format(
      "These queries form {} blocks of {} neighbours, too few for any difference between {} methods to be significant: "
      "the order may be chance. Evaluate more queries or compare fewer methods.",
      (*first)->blocks, queries_per_block, rows.size());
}

/// The rows of a budget whose means a few huge errors determine.
std::string tail_note(const std::vector<const replay::Record*>& rows) {
  std::vector<std::string> names;
  for (const replay::Record* r : rows) {
    if (!r->of(replay::metric("rel_err")).mean_is_estimable()) names.push_back(label(*r));
  }
  if (names.empty()) return "";
  return fmt::format(
      "The mean error of {} is not estimable from these queries: a few huge errors determine it. Compare medians.",
      listed(names));
}

/// Where the rows of a budget differ in cost.
std::string cost_note(const std::vector<const replay::Record*>& rows) {
  const Budget budget = Budget::parse(rows.front()->budget);
  const bool reads = budget.cost() == CostKind::read;
  const auto cost = [&](const replay::Record* r) {
    return r->bytes.of(reads ? CostKind::read : CostKind::memory) / r->bytes.full;
  };
  const auto [least, most] = std::ranges::minmax_element(rows, {}, cost);
  if (!(cost(*most) > compare::equal_cost * cost(*least))) return "";
  std::string out = fmt::format("These rows do not cost the same: they {} from {} ({}) to {} ({}) of the full cache",
                                reads ? "read" : "hold", short_number(cost(*least)), label(**least),
                                short_number(cost(*most)), label(**most));
  return out + (budget.cost() ? "." : "; compare equal memory with --budget 25%mem.");
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

}  // namespace

std::vector<std::string> answers_of(std::span<const replay::Record> rows) {
  OrderedMap<std::tuple<std::string, replay::Protocol, std::string>, std::vector<const replay::Record*>> groups;
  for (const replay::Record& r : rows) {
    if (is_ranked(r)) groups[{r.sha256, r.protocol, r.budget}].push_back(&r);
  }
  const bool traces =
      std::ranges::any_of(rows, [&](const replay::Record& r) { return r.sha256 != rows.front().sha256; });
  DistinctTexts out;
  for (auto& [key, group] : groups.items()) {
    if (group.size() < 2) continue;
    std::ranges::stable_sort(group, {}, [](const replay::Record* r) { return error_of(*r); });
    out.add((traces ? group.front()->trace + ": " : "") + verdict(group));
    for (const std::string& note : {family_note(group), few_blocks_note(group), tail_note(group), cost_note(group)}) {
      if (!note.empty()) out.add(note);
    }
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
      out.push_back(fmt::format("{}, {}.", budget_text(texts[first].budget), fmt::join(winners, ", ")));
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
