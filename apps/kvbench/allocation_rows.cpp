// SPDX-License-Identifier: Apache-2.0
#include <apps/kvbench/allocation_rows.hpp>

#include <algorithm>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <kvbench/report/replay/ranked_figure.hpp>
#include <kvbench/report/text/sentences.hpp>

namespace kvbench::app {
namespace {

using allocate::Damages;
using report::Column;

template <class F>
Column<AllocationRow> computed(const char* key, const char* doc, F of) {
  return {key, doc, report::value_where<AllocationRow>(report::always, of)};
}

std::string percent(double share) { return fmt::format("{:.4g} %", 100 * share); }

/// "0.0052 [0.0031, 0.0084]", with what the quadratic form says above its range. A sum of squares over layers has no
/// interval over documents.
std::string damage_text(const Damages& damages, const replay::PredictedKl& kl) {
  if (!damages.probed) return report::three_digits(kl.mean);
  return report::prediction_mark(kl) + report::interval_text(kl.mean, kl.interval.lo, kl.interval.hi);
}

/// "h2o+q5_1", "h2o sinks=8"
std::string name_of(const replay::MethodChoice& method) {
  const std::string params = method.params.text();
  return method.info->name + (params.empty() ? "" : " " + params);
}

/// "30 layers", "90 kv heads", "1 layer"
std::string count_text(const Damages& damages, std::size_t count) {
  const char* const one = damages.by == allocate::Division::layer ? "layer" : "kv head";
  return fmt::format("{} {}{}", count, one, count == 1 ? "" : "s");
}

/// "12 layers h2o+q5_1, 10 q5_1", the most frequent first.
std::string what_places_get(const Damages& damages, const allocate::Plan& plan) {
  std::map<std::string, std::size_t> places;
  for (const std::size_t entry : plan) ++places[name_of(damages.menu[entry].method)];
  std::vector<std::pair<std::string, std::size_t>> ordered(places.begin(), places.end());
  std::ranges::stable_sort(ordered, std::greater(), [](const auto& item) { return item.second; });
  std::vector<std::string> parts;
  for (const auto& [name, count] : ordered)
    parts.push_back((parts.empty() ? count_text(damages, count) : fmt::format("{}", count)) + ' ' + name);
  return report::listed_up_to(parts);
}

std::string range_of_shares(const Damages& damages, const allocate::Plan& plan) {
  std::vector<double> shares;
  for (std::size_t l = 0; l < plan.size(); ++l) shares.push_back(damages.share(l, plan[l]));
  const auto [least, most] = std::ranges::minmax(shares);
  return fmt::format("{} to {}", percent(least), percent(most));
}

}  // namespace

AllocationRow allocation_row(const allocate::Damages& damages, allocate::Allocation allocation) {
  const auto share = [&](std::int64_t cost) {
    return static_cast<double>(cost) / static_cast<double>(allocate::whole_place) /
           static_cast<double>(damages.places.size());
  };
  std::string equal = name_of(damages.menu[allocation.equal.plan.front()].method);
  AllocationRow row{std::move(allocation),
                    damages.model,
                    damages.figure(),
                    count_text(damages, damages.places.size()),
                    std::move(equal),
                    0,
                    0};
  row.plan_share = share(row.plan.cost), row.equal_share = share(row.equal.cost);
  return row;
}

std::span<const Column<AllocationRow>> allocation_columns() {
  static const std::vector<Column<AllocationRow>> table = {
      computed("model", "model that the traces came from", [](auto& r) { return r.model; }),
      computed("budget", "budget as given", [](auto& r) { return r.budget.text(); }),
      computed("documents", "prompts of the traces", [](auto& r) { return r.documents; }),
      computed("divided_among", "layers or kv heads that get budgets, such as \"30 layers\"",
               [](auto& r) { return r.divided_among; }),
      computed("figure",
               "what plan_kl and the like are: predicted KL, or mean square residual error where traces have no probes",
               [](auto& r) { return r.figure; }),
      computed("plan_kl", "predicted KL per scored token of plans on the documents from which they were not computed",
               [](auto& r) { return r.plan.held_out.mean; }),
      computed("plan_kl_lo", "lower end of its 95 % interval over documents and probes",
               [](auto& r) { return r.plan.held_out.interval.lo; }),
      computed("plan_kl_hi", "upper end", [](auto& r) { return r.plan.held_out.interval.hi; }),
      computed("plan_kl_fitted", "the same on the documents from which the plan was computed: too small",
               [](auto& r) { return r.plan.fitted; }),
      computed("plan_share", "memory that the plan holds, of the full cache", [](auto& r) { return r.plan_share; }),
      computed("equal", "the best configuration that all layers can have at this budget",
               [](auto& r) { return r.equal_method; }),
      computed("equal_kl", "predicted KL of the best equal configuration of the other documents, as plan_kl",
               [](auto& r) { return r.equal.held_out.mean; }),
      computed("equal_kl_lo", "lower end of its interval", [](auto& r) { return r.equal.held_out.interval.lo; }),
      computed("equal_kl_hi", "upper end", [](auto& r) { return r.equal.held_out.interval.hi; }),
      computed("equal_kl_fitted", "the same on the documents from which it was chosen",
               [](auto& r) { return r.equal.fitted; }),
      computed("equal_share", "memory that it holds, of the full cache", [](auto& r) { return r.equal_share; }),
      computed("ratio", "plan_kl to equal_kl, geometric mean over documents", [](auto& r) { return r.ratio; }),
      computed("ratio_lo", "lower end of its 95 % interval over documents (Student's t)",
               [](auto& r) { return r.interval.lo; }),
      computed("ratio_hi", "upper end", [](auto& r) { return r.interval.hi; }),
      computed("shrinkage", "of the plan towards equal layers, between 0 and 1", [](auto& r) { return r.shrinkage; }),
      computed("confirmed", "1 where the interval of the ratio is below 1: the plan is the answer",
               [](auto& r) { return r.confirmed() ? 1 : 0; }),
      report::version_column<AllocationRow>(),
      report::commit_column<AllocationRow>(),
  };
  return table;
}

std::vector<std::string> sentences(const Damages& damages, const AllocationRow& row) {
  const std::string at = report::at_budget(row.budget), equal = row.equal_method + " in all layers";
  const std::string held = fmt::format("(holds {})", percent(row.equal_share));
  if (row.documents == 1) {
    return {
        fmt::format("{} one document cannot confirm a plan: the answer is {} {}, with a {} of {} on the document that "
                    "chose it. Give traces of at least three documents.",
                    at, equal, held, row.figure, report::three_digits(row.equal.fitted))};
  }
  const std::string ratio = fmt::format("{} times", report::interval_text(row.ratio, row.interval.lo, row.interval.hi));
  const std::string over = fmt::format("each of {} documents held out once", row.documents);
  if (!row.confirmed()) {
    return {
        fmt::format("{} held-out documents do not confirm a plan: it has {} the {} of the best equal budget ({}). The "
                    "answer is {} {}, {} {}.",
                    at, ratio, row.figure, over, equal, held, row.figure, damage_text(damages, row.equal.held_out))};
  }
  const std::string fitted = report::three_digits(row.plan.fitted);
  std::vector<std::string> out{
      fmt::format("{} the plan has a {} of {} on held-out documents, {} that of the best equal budget, {} {}, {} ({}).",
                  at, row.figure, damage_text(damages, row.plan.held_out), ratio, equal, held,
                  damage_text(damages, row.equal.held_out), over),
      fmt::format("It gives {}; a {} holds {} of its cache, all layers {}. Fitted to all documents its {} is {}, {}; "
                  "shrinkage towards equal layers: {}.",
                  what_places_get(damages, row.plan.plan), damages.place(), range_of_shares(damages, row.plan.plan),
                  percent(row.plan_share), damages.probed ? "KL" : "error", fitted,
                  fitted == report::three_digits(row.plan.held_out.mean) ? "as on held-out ones" : "which is too small",
                  row.shrinkage)};
  if (!damages.probed)
    out.emplace_back(
        "The traces have no probes: errors of all layers count alike, and the model may notice those of some more. "
        "Measure the plan with kvbench eval, or record probes (kvbench-dump-hf --probes 16).");
  return out;
}

}  // namespace kvbench::app
