// SPDX-License-Identifier: Apache-2.0
// Anchors of a trace (trace::Anchors): what the model itself measured for some configurations, against which
// predictions of configurations of the same kind are held.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <kvbench/replay/records/results.hpp>

namespace kvbench::replay {

/// How a method changes a cache. Predictions of one kind are off by other factors than those of another.
enum class ChangeKind { rounded, dropped, both };
inline constexpr std::pair<ChangeKind, const char*> change_kinds[] = {
    {ChangeKind::rounded, "rounded"}, {ChangeKind::dropped, "dropped"}, {ChangeKind::both, "both"}};
/// Of a method by its name in results: quantisers round, compositions and plans do both, all others drop or merge.
ChangeKind kind_of(std::string_view method);

/// The anchors of a prompt as ReplayFrame::Prompt has them.
std::vector<trace::Anchor> named_as_rows(const trace::Anchors& anchors);

/// The prompts of a trace that have anchors, with these alone.
std::vector<ReplayFrame::Prompt> anchored_prompts(const trace::TraceInfo& trace);

/// How measured KL compares with predicted KL in the anchors of one kind.
struct AnchorRatio {
  std::size_t anchors = 0;  ///< configurations; below 2 nothing is known
  double factor = 1;        ///< geometric mean over them of measured / predicted
  double spread = 0;        ///< standard error of the logarithm of this ratio for another configuration
};

/// A kind whose predictions are off by more than this factor cannot be predicted.
inline constexpr double largest_anchor_ratio = 3;

/// Over the anchors of a kind of all prompts, in all layers, with a prediction of at most `largest_predicted`. The
/// ratio of a configuration is that of its sums over the prompts.
AnchorRatio anchor_ratio(std::span<const ReplayFrame::Prompt> prompts, ChangeKind kind);

/// "measured 4.1 times the prediction", where predictions of this kind fail; otherwise empty.
std::string failure_text(const AnchorRatio& ratio);

/// KL that the model itself had for this configuration, mean over these prompts, nats per scored token; NaN where it
/// was not measured on one of them. `label`: name with settings, as compare::label_of() writes it.
double measured_kl(std::span<const ReplayFrame::Prompt* const> prompts, std::string_view label, const Budget& budget);

}  // namespace kvbench::replay
