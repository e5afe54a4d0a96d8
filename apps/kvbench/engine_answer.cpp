// SPDX-License-Identifier: Apache-2.0
#include <apps/kvbench/engine_answer.hpp>

#include <algorithm>

#include <kvbench/report/text/sentences.hpp>

namespace kvbench::app {
namespace {

using allocate::Damages;
using allocate::Plan;

/// "0.52 [0.4, 0.7] times the predicted KL"
std::string times_text(const Damages& damages, const allocate::Ratio& ratio) {
  return fmt::format("{} times the {}", report::interval_text(ratio.mean, ratio.interval.lo, ratio.interval.hi),
                     damages.figure());
}

/// Of the answer, from all documents but one each.
std::span<const Plan> held_out_plans(const AllocationRow& row) { return row.answer(row.accept).without; }

std::string rule_sentence(const Damages& damages, const AllocationRow& row, const MenuNames& names) {
  const Plan& answer = row.answer(row.accept).plan;
  const std::optional<Plan> rule = allocate::whole_ends(damages, answer);
  if (!rule) return "";
  const auto middle = std::ranges::find_if(
      *rule, [&](std::size_t e) { return damages.menu[e].method.info->kind != methods::Kind::exact; });
  const std::int64_t cost = allocate::cost_of({damages.places.size(), damages.menu.size(), {}, damages.cost}, *rule);
  const std::vector<Plan> everywhere(held_out_plans(row).size(), *rule);
  return fmt::format(
      "The first 2 and the last 2 layers in 16 bits and the others in {} hold {:.4g} % and have {} of this answer on "
      "held-out documents.",
      names[*middle], 100 * static_cast<double>(cost) / static_cast<double>(damages.budget_of(1)),
      times_text(damages, allocate::compare(damages, everywhere, held_out_plans(row))));
}

}  // namespace

std::vector<std::string> sentences_beside(const methods::EngineInfo& engine, const Damages& damages,
                                          const AllocationRow& row, const allocate::Allocation& free,
                                          const MenuNames& names) {
  std::vector<std::string> out;
  if (row.documents < 2) return out;
  if (std::string rule = rule_sentence(damages, row, names); !rule.empty()) out.push_back(std::move(rule));
  if (engine.shape != methods::Shape::equal || free.planned(row.accept)) {
    const allocate::Ratio gain = allocate::compare(damages, free.answer(row.accept).without, held_out_plans(row));
    out.push_back(fmt::format("{} {}. A plan that gives each layer what it likes of the menu has {} of this answer.",
                              engine.name(), engine.limits, times_text(damages, gain)));
  }
  const std::int64_t other = damages.model_layers - std::ssize(damages.places);
  if (other > 0 && (engine.shape == methods::Shape::equal || engine.shape == methods::Shape::ends))
    out.push_back(fmt::format(
        "{} rounds the caches of the {} other layers of the model, too, of which these traces know nothing.",
        engine.name(), other));
  return out;
}

std::string what_to_type(const methods::EngineInfo& engine, const Damages& damages, const AllocationRow& row) {
  std::string text = fmt::format("In {} ({}):\n", engine.name(), engine.version);
  for (const std::string& line : allocate::settings_of(engine, damages, row.answer(row.accept).plan))
    text += "    " + line + '\n';
  return text;
}

}  // namespace kvbench::app
