// SPDX-License-Identifier: Apache-2.0
#include <kvbench/replay/records/anchors.hpp>

#include <cmath>
#include <exception>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <kvbench/core/ordered_map.hpp>
#include <kvbench/core/statistics.hpp>
#include <kvbench/methods/contract/method_text.hpp>
#include <kvbench/methods/registry.hpp>
#include <kvbench/replay/records/predicted_kl.hpp>

namespace kvbench::replay {

ChangeKind kind_of(std::string_view method) {
  const std::string_view family = methods::family_of(method);
  return family == "quantisation"  ? ChangeKind::rounded
         : family == "composition" ? ChangeKind::both
                                   : ChangeKind::dropped;
}

std::vector<trace::Anchor> named_as_rows(const trace::Anchors& anchors) {
  std::vector<trace::Anchor> out = anchors.list;
  for (trace::Anchor& anchor : out) {
    try {
      const auto text = methods::parse_method_text(anchor.method);
      const methods::MethodInfo& info = methods::find_method(text.value().name);
      const methods::Params params = info.bind(methods::parse_settings(text->settings.value_or("")));
      anchor.method = params.text().empty() ? info.name : fmt::format("{}[{}]", info.name, params.text());
      if (info.quantiser.levels && info.quantiser.levels(params).size() == 1) anchor.budget.clear();
    } catch (const std::exception&) {  // a method that this version does not have
    }
  }
  return out;
}

AnchorRatio anchor_ratio(std::span<const ReplayFrame::Prompt> prompts, ChangeKind kind) {
  OrderedMap<std::pair<std::string, std::string>, std::pair<double, double>> sums;  // measured and predicted
  for (const ReplayFrame::Prompt& prompt : prompts) {
    for (const trace::Anchor& anchor : prompt.anchors) {
      const std::string name = anchor.method.substr(0, anchor.method.find('['));
      if (anchor.layer || kind_of(name) != kind || !(anchor.kl > 0) || !(anchor.predicted > 0)) continue;
      if (anchor.predicted > largest_predicted) continue;
      auto& [measured, predicted] = sums[{anchor.method, anchor.budget}];
      measured += anchor.kl, predicted += anchor.predicted;
    }
  }
  std::vector<double> logs;
  for (const auto& [configuration, sum] : sums.items()) logs.push_back(std::log(sum.first / sum.second));
  if (logs.size() < 2) return {.anchors = logs.size()};
  const auto count = static_cast<double>(logs.size());
  return {.anchors = logs.size(),
          .factor = std::exp(mean(logs)),
          .spread = standard_error(logs) * std::sqrt(count) * std::sqrt(1 + 1 / count)};
}

std::string failure_text(const AnchorRatio& ratio) {
  if (ratio.factor <= largest_anchor_ratio && ratio.factor >= 1 / largest_anchor_ratio) return "";
  return fmt::format("measured {:.2g} times the prediction", ratio.factor);
}

double measured_kl(std::span<const ReplayFrame::Prompt* const> prompts, std::string_view label, const Budget& budget) {
  double sum = 0;
  for (const ReplayFrame::Prompt* prompt : prompts) {
    double found = NAN;
    for (const trace::Anchor& anchor : prompt->anchors) {
      const bool same = anchor.method == label && (anchor.budget.empty() || Budget::find(anchor.budget) == budget);
      if (prompt->anchored && !anchor.layer && same) found = anchor.kl;
    }
    sum += found;
  }
  return prompts.empty() ? NAN : sum / static_cast<double>(prompts.size());
}

}  // namespace kvbench::replay
