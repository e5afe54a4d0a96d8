// SPDX-License-Identifier: Apache-2.0
#include <apps/kvbench/allocation_rows.hpp>

#include <algorithm>
#include <map>
#include <set>

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

/// A figure of equal budgets, NaN if there are none.
template <class F>
auto of_equal(F figure) {
  return [figure](const AllocationRow& row) { return row.equal ? figure(*row.equal) : NAN; };
}

std::string percent(double share) { return fmt::format("{:.4g} %", 100 * share); }

/// "0.0052 [0.0031, 0.0084]", with what the quadratic form says above its range. A sum of squares over layers has no
/// interval over documents.
std::string damage_text(const Damages& damages, const replay::PredictedKl& kl) {
  if (!damages.probed) return report::three_digits(kl.mean);
  return report::mark_of(figure_of(replay::figure_named("kl_predicted")), kl.mean) +
         report::interval_text(kl.mean, kl.interval.lo, kl.interval.hi);
}

/// By method, the layers in which some entry of it is outside the region of predictions.
std::map<std::string, std::set<std::int64_t>> layers_outside(const Damages& damages, const MenuNames& names) {
  std::map<std::string, std::set<std::int64_t>> layers;
  for (std::size_t e = 0; e < damages.menu.size(); ++e) {
    for (const std::int64_t layer : damages.layers_outside(e)) layers[names[e]].insert(layer);
  }
  return layers;
}

std::set<std::int64_t> united(const std::map<std::string, std::set<std::int64_t>>& layers_of_methods) {
  std::set<std::int64_t> all;
  for (const auto& [name, layers] : layers_of_methods) all.insert(layers.begin(), layers.end());
  return all;
}

/// "30 layers", "90 kv heads", "1 layer"
std::string count_text(const Damages& damages, std::size_t count) {
  const char* const one = damages.by == allocate::Division::layer ? "layer" : "kv head";
  return fmt::format("{} {}{}", count, one, count == 1 ? "" : "s");
}

/// "12 layers h2o+q5_1, 10 q5_1", the most frequent first.
std::string what_places_get(const Damages& damages, const allocate::Plan& plan, const MenuNames& names) {
  std::map<std::string, std::size_t> places;
  for (const std::size_t entry : plan) ++places[names[entry]];
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

MenuNames menu_names(const Damages& damages, const report::Labels& labels) {
  std::vector<replay::MethodChoice> menu;
  for (const auto& entry : damages.menu) menu.push_back(entry.method);  // entries of several sizes are of one method
  MenuNames names;
  for (const compare::QueryConfiguration& entry : labels.shown(menu))
    names.push_back(entry.method + (entry.params.empty() ? "" : " " + entry.params));
  return names;
}

AllocationRow allocation_row(const allocate::Damages& damages, allocate::Allocation allocation,
                             allocate::Accept accept) {
  const auto share = [&](std::int64_t cost) {
    return static_cast<double>(cost) / static_cast<double>(allocate::whole_place) /
           static_cast<double>(damages.places.size());
  };
  const MenuNames names = menu_names(damages, report::Labels({}));
  std::string equal = allocation.equal ? names[allocation.equal->plan.front()] : "";
  AllocationRow row{std::move(allocation),
                    damages.model,
                    damages.figure(),
                    count_text(damages, damages.places.size()),
                    std::move(equal),
                    0,
                    0,
                    0,
                    accept};
  row.plan_share = share(row.plan.cost), row.equal_share = row.equal ? share(row.equal->cost) : NAN;
  row.layers_outside = united(layers_outside(damages, names)).size();
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
               "what plan_damage and equal_damage are: predicted KL per scored token, or mean square residual error "
               "where traces have no probes",
               [](auto& r) { return r.figure; }),
      computed("plan_damage", "that of plans on the documents from which they were not computed",
               [](auto& r) { return r.plan.held_out.mean; }),
      computed("plan_damage_lo", "lower end of its 95 % interval over documents",
               [](auto& r) { return r.plan.held_out.interval.lo; }),
      computed("plan_damage_hi", "upper end", [](auto& r) { return r.plan.held_out.interval.hi; }),
      computed("plan_damage_fitted", "the same on the documents from which the plan was computed: mostly too small",
               [](auto& r) { return r.plan.fitted; }),
      computed("plan_share", "memory that the plan holds, of the full cache", [](auto& r) { return r.plan_share; }),
      computed("equal", "the best configuration that all layers can have at this budget; empty if they can have none",
               [](auto& r) { return r.equal_method; }),
      computed("equal_damage", "that of the best equal configuration of the other documents, as plan_damage",
               of_equal([](auto& equal) { return equal.held_out.mean; })),
      computed("equal_damage_lo", "lower end of its interval",
               of_equal([](auto& equal) { return equal.held_out.interval.lo; })),
      computed("equal_damage_hi", "upper end", of_equal([](auto& equal) { return equal.held_out.interval.hi; })),
      computed("equal_damage_fitted", "the same on the documents from which it was chosen",
               of_equal([](auto& equal) { return equal.fitted; })),
      computed("equal_share", "memory that it holds, of the full cache", [](auto& r) { return r.equal_share; }),
      computed("ratio", "damage of the plan to that of equal budgets on held-out documents, geometric mean",
               [](auto& r) { return r.ratio; }),
      computed("ratio_lo", "lower end of its 95 % interval over documents (Student's t)",
               [](auto& r) { return r.interval.lo; }),
      computed("ratio_hi", "upper end", [](auto& r) { return r.interval.hi; }),
      computed("shrinkage", "of the damages of a layer towards the mean over layers, between 0 and 1",
               [](auto& r) { return r.shrinkage.layers; }),
      computed("shrinkage_documents", "of the damages of a document towards those of the others, between 0 and 1",
               [](auto& r) { return r.shrinkage.documents; }),
      computed("confirmed", "1 if the interval of the ratio is below 1", [](auto& r) { return r.confirmed() ? 1 : 0; }),
      computed("documents_needed",
               "documents for which the interval would be below 1 if the ratio and its spread stayed; empty if the "
               "ratio is at least 1, and above 1000",
               [](auto& r) { return r.needed ? static_cast<double>(*r.needed) : NAN; }),
      computed("layers_outside",
               "layers in which the damage of an entry of the menu cannot be predicted, so that no plan has it there",
               [](auto& r) { return r.layers_outside; }),
      computed("answer", "what is written: plan or equal",
               [](auto& r) { return std::string(r.planned() ? "plan" : "equal"); }),
      report::version_column<AllocationRow>(),
      report::commit_column<AllocationRow>(),
  };
  return table;
}

namespace {

/// "Not confirmed: 4 documents, about 7 would be needed."
std::string confirmation(const AllocationRow& row) {
  if (row.confirmed()) return fmt::format("Confirmed by {} documents.", row.documents);
  return fmt::format("Not confirmed: {} documents, {} would be needed.", row.documents,
                     row.needed ? fmt::format("about {}", *row.needed) : "more than 1000");
}

/// Where it is not the plan.
std::vector<std::string> equal_sentences(const Damages& damages, const AllocationRow& row,
                                         const std::string& equal_method) {
  const std::string at = report::at_budget(row.budget);
  const std::string equal = fmt::format("{} in all layers (holds {})", equal_method, percent(row.equal_share));
  if (row.documents == 1) {
    return {
        fmt::format("{} the answer is equal budgets, {}, with a {} of {} on the document that chose it: what a plan "
                    "does to other documents cannot be told from one. Give traces of at least three documents.",
                    at, equal, row.figure, report::three_digits(row.equal->fitted))};
  }
  if (!row.divides) {
    return {fmt::format("{} the answer is {}, {} {} (each of {} documents held out once).", at, equal, row.figure,
                        damage_text(damages, row.equal->held_out), row.documents)};
  }
  std::vector<std::string> out{fmt::format(
      "{} the answer is equal budgets, {}, {} {}: on held-out documents a plan has {} times their {} (each of {} "
      "documents held out once).",
      at, equal, row.figure, damage_text(damages, row.equal->held_out),
      report::interval_text(row.ratio, row.interval.lo, row.interval.hi), damages.probed ? "KL" : "error",
      row.documents)};
  if (row.ratio < 1) out.push_back(confirmation(row));
  return out;
}

/// The damage of the plan, and that of equal budgets if there are any.
std::vector<std::string> damage_sentences(const Damages& damages, const AllocationRow& row, const MenuNames& names) {
  const std::string at = report::at_budget(row.budget);
  constexpr const char* alone = "No configuration of the menu can be had in all layers, so there are no equal budgets.";
  if (row.documents == 1) {
    return {fmt::format("{} the plan has a {} of {} on the document that chose it: what it does to other documents "
                        "cannot be told from one. Give traces of at least three documents.",
                        at, row.figure, report::three_digits(row.plan.fitted)),
            alone};
  }
  const std::string damage = damage_text(damages, row.plan.held_out);
  if (!row.equal) {
    return {fmt::format("{} the plan has a {} of {} on held-out documents (each of {} documents held out once).", at,
                        row.figure, damage, row.documents),
            alone};
  }
  return {fmt::format("{} the plan has a {} of {} on held-out documents, {} times that of the best equal budget, {} in "
                      "all layers (holds {}), {} (each of {} documents held out once).",
                      at, row.figure, damage, report::interval_text(row.ratio, row.interval.lo, row.interval.hi),
                      names[row.equal->plan.front()], percent(row.equal_share),
                      damage_text(damages, row.equal->held_out), row.documents),
          confirmation(row)};
}

std::vector<std::string> plan_sentences(const Damages& damages, const AllocationRow& row, const MenuNames& names) {
  std::vector<std::string> out = damage_sentences(damages, row, names);
  out.push_back(fmt::format(
      "It gives {}; a {} holds {} of its cache, all layers {}. Fitted to all documents its {} is {}{}; shrinkage "
      "towards equal layers: {}, of documents towards each other: {}.",
      what_places_get(damages, row.plan.plan, names), damages.place(), range_of_shares(damages, row.plan.plan),
      percent(row.plan_share), damages.probed ? "KL" : "error", report::three_digits(row.plan.fitted),
      row.plan.fitted < row.plan.held_out.mean ? ", which is too small" : "", row.shrinkage.layers,
      row.shrinkage.documents));
  if (!damages.probed)
    out.emplace_back(
        "The traces have no probes: errors of all layers count alike, and the model may notice those of some more. "
        "Measure the plan with kvbench eval, or record probes (kvbench-dump-hf --probes 16).");
  return out;
}

/// "layer 0", "layers 0, 1 and 3 more"
std::string layers_text(const std::set<std::int64_t>& layers) {
  std::vector<std::string> names;
  for (const std::int64_t layer : layers) names.push_back(std::to_string(layer));
  return (names.size() == 1 ? "layer " : "layers ") + report::listed_up_to(names);
}

std::string stream_sentence(const Damages& damages, const MenuNames& names) {
  const auto outside = layers_outside(damages, names);
  if (outside.empty()) return "";
  std::set<std::int64_t> all;
  for (const methods::PlanPlace& place : damages.places) all.insert(place.layer);
  std::vector<std::string> parts;
  for (const auto& [name, layers] : outside) parts.push_back(name + " in " + layers_text(layers));
  return fmt::format(
      "In {} of {} layers the damage of entries of the menu cannot be predicted, because their error is above {:.2g} "
      "of the residual stream (at some or all sizes): {}. At those sizes no plan has them there.",
      united(outside).size(), all.size(), replay::largest_stream_error, fmt::join(parts, "; "));
}

/// By what anchors of one kind say of entries: "times 1.4 (6 anchors)", or that they fail.
std::string anchors_sentence(const Damages& damages, const MenuNames& names) {
  std::map<std::string, std::set<std::string>> corrected, failed;
  for (std::size_t e = 0; e < damages.anchors.size(); ++e) {
    const replay::AnchorRatio& ratio = damages.anchors[e];
    const std::string failure = damages.anchors_failure(e);
    if (!failure.empty()) {
      failed[failure].insert(names[e]);
    } else if (ratio.anchors > 1) {
      corrected[fmt::format("times {:.2g} (of {} anchors)", ratio.factor, ratio.anchors)].insert(names[e]);
    }
  }
  const auto listed = [](const std::map<std::string, std::set<std::string>>& by_text) {
    std::vector<std::string> parts;
    for (const auto& [text, of] : by_text) parts.push_back(fmt::format("{} {}", fmt::join(of, ", "), text));
    return fmt::format("{}", fmt::join(parts, "; "));
  };
  std::string out;
  if (!corrected.empty()) out = fmt::format("Anchors of the traces correct damages: {}.", listed(corrected));
  if (!failed.empty())
    out += fmt::format("{}Anchors say that these cannot be predicted, so that no plan has them: {}.",
                       out.empty() ? "" : " ", listed(failed));
  return out;
}

}  // namespace

std::vector<std::string> outside_sentences(const Damages& damages, const MenuNames& names) {
  std::vector<std::string> out;
  for (std::string sentence : {stream_sentence(damages, names), anchors_sentence(damages, names)}) {
    if (!sentence.empty()) out.push_back(std::move(sentence));
  }
  return out;
}

std::vector<std::string> sentences(const Damages& damages, const AllocationRow& row, const MenuNames& names) {
  return row.planned() ? plan_sentences(damages, row, names)
                       : equal_sentences(damages, row, names[row.equal->plan.front()]);
}

}  // namespace kvbench::app
