// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/replay/reason_groups.hpp>

#include <optional>
#include <tuple>

#include <fmt/ranges.h>

#include <kvbench/compare/configuration_name.hpp>
#include <kvbench/core/ordered_map.hpp>
#include <kvbench/report/text/sentences.hpp>
#include <kvbench/report/text/text.hpp>

namespace kvbench::report {
namespace {

using Names = std::vector<std::string>;
using Budgets = std::vector<Budget>;

/// The rows of one method in one trace, then of several.
struct ReasonEntry {
  DistinctTexts methods, layers, prompts, traces;
  Distinct<Budget> budgets;
  Names reasons;

  void add(const ReasonEntry& other) {
    for (const auto list : {&ReasonEntry::methods, &ReasonEntry::layers, &ReasonEntry::prompts, &ReasonEntry::traces}) {
      for (const std::string& text : (other.*list).list()) (this->*list).add(text);
    }
    for (const Budget& budget : other.budgets.list()) budgets.add(budget);
    reasons.insert(reasons.end(), other.reasons.begin(), other.reasons.end());
  }
};

/// Status, reason without numbers, and what the budget limits: costs of different kinds form no range.
using Kind = std::tuple<replay::Status, std::string, std::optional<CostKind>>;

std::string method_of(const replay::Record& r) { return compare::label_of({r.method, r.params, {}}); }

}  // namespace

std::vector<ReasonGroup> reason_groups(std::span<const replay::Record* const> rows) {
  OrderedMap<std::tuple<Kind, std::string, std::string>, ReasonEntry> by_method;
  for (const replay::Record* r : rows) {
    ReasonEntry one;
    one.methods.add(method_of(*r)), one.budgets.add(r->budget), one.prompts.add(r->prompt), one.traces.add(r->trace);
    one.layers.add(r->layer ? fmt::format("{}", *r->layer) : "all");
    one.reasons.push_back(r->reason);
    const Kind kind{r->status, without_numbers(r->reason), r->budget.cost()};
    by_method[{kind, r->sha256, method_of(*r)}].add(one);
  }
  OrderedMap<std::tuple<Kind, std::string, Budgets, Names, Names>, ReasonEntry> by_place;
  for (const auto& [key, e] : by_method.items())
    by_place[{std::get<0>(key), std::get<1>(key), e.budgets.list(), e.layers.list(), e.prompts.list()}].add(e);
  OrderedMap<std::tuple<Kind, Names, Budgets, Names, Names>, ReasonEntry> by_methods;
  for (const auto& [key, e] : by_place.items())
    by_methods[{std::get<0>(key), e.methods.list(), e.budgets.list(), e.layers.list(), e.prompts.list()}].add(e);
  std::vector<ReasonGroup> out;
  for (const auto& [key, e] : by_methods.items())
    out.push_back({std::get<0>(std::get<0>(key)), with_ranges(e.reasons), e.methods.list(), e.budgets.list(),
                   e.layers.list(), e.prompts.list(), e.traces.list(), e.reasons.size()});
  return out;
}

std::vector<std::string> reason_sentences(std::span<const replay::Record> rows) {
  std::vector<const replay::Record*> broken;
  DistinctTexts traces;
  for (const replay::Record& r : rows) {
    traces.add(r.trace);
    if (r.status != replay::Status::ok) broken.push_back(&r);
  }
  std::vector<std::string> out;
  for (const ReasonGroup& group : reason_groups(broken)) {
    const bool some = group.traces.size() < traces.list().size();
    out.push_back(fmt::format("{} at {}{}: {} ({})", name_of(group.status), budget_words(group.budgets),
                              some ? fmt::format(" on {}", fmt::join(group.traces, ", ")) : "",
                              fmt::join(group.methods, ", "), group.reason));
  }
  return out;
}

}  // namespace kvbench::report
