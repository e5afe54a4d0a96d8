// SPDX-License-Identifier: Apache-2.0
#include <kvbench/replay/records/anchors.hpp>

#include <cmath>
#include <exception>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <kvbench/core/ordered_map.hpp>
#include <kvbench/core/statistics.hpp>
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
      const methods::MethodName name = methods::parse_method_text(anchor.method).value();
      if (!name.file.empty()) continue;  // whoever writes a trace has no say in which files are read and run
      const methods::MethodInfo& info = methods::find_method(name);
      const methods::Params params = info.bind(name.assignments());
      anchor.method = params.text().empty() ? info.name : fmt::format("{}[{}]", info.name, params.text());
      if (info.quantiser.levels && info.quantiser.levels(params).size() == 1) anchor.budget.clear();
    } catch (const std::exception&) {  // a method that this version does not have
    }
  }
  return out;
}

std::vector<ReplayFrame::Prompt> anchored_prompts(const trace::TraceInfo& trace) {
  std::vector<ReplayFrame::Prompt> out;
  for (const trace::PromptInfo& prompt : trace.prompts) {
    if (prompt.anchors) out.push_back({.id = prompt.id, .anchors = named_as_rows(*prompt.anchors)});
  }
  return out;
}

AnchorRatio anchor_ratio(std::span<const ReplayFrame::Prompt> prompts, ChangeKind kind) {
  OrderedMap<std::pair<std::string, std::string>, std::pair<double, double>> sums;  // measured and predicted
  for (const ReplayFrame::Prompt& prompt : prompts) {
    for (const trace::Anchor& anchor : prompt.anchors) {
      if (anchor.layer || !(anchor.kl > 0) || !(anchor.predicted > 0) || anchor.predicted > largest_predicted) continue;
      const auto name = methods::parse_method_text(anchor.method);
      if (kind_of(name ? name->name() : anchor.method) != kind) continue;
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
