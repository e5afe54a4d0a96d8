// SPDX-License-Identifier: Apache-2.0
// The table of measures of the damage to the output of the model, by which documents are compared.
#pragma once

#include <array>

#include <kvbench/eval/pass_sums.hpp>
#include <kvbench/replay/metrics/info.hpp>

namespace kvbench::eval {

/// A measure, the mean of `sum` over what is counted.
struct DamageMetric {
  replay::MetricInfo info;
  std::string_view column;  ///< of tables of kveval
  double (*sum)(const PassSums&);
  double PassSums::*count;
  bool everywhere = true;  ///< whether every document has it
};

/// The default first.
inline constexpr auto damage_metrics = std::to_array<DamageMetric>({
    {{.name = "kl",
      .meaning = "KL(full || compressed) of the next token, mean over the scored tokens, nats",
      .better = replay::Better::smaller,
      .limits = replay::limits::at_least_zero,
      .applies = "every document"},
     "kl_mean",
     [](const PassSums& s) { return s.kl; },
     &PassSums::tokens},
    {{.name = "nll",
      .meaning = "nll - nll_full",
      .better = replay::Better::smaller,
      .limits = replay::limits::any_sign,
      .applies = "every document"},
     "nll_diff",
     [](const PassSums& s) { return s.nll - s.nll_full; },
     &PassSums::tokens},
    {{.name = "match",
      .meaning = "exact match: share of answers all of whose tokens are the most probable ones",
      .better = replay::Better::larger,
      .limits = replay::limits::share,
      .applies = "documents with answers, of tasks with exact match"},
     "match",
     [](const PassSums& s) { return s.right; },
     &PassSums::answers,
     false},
    {{.name = "top1",
      .meaning = "share of scored tokens whose most probable token is the one of the full cache",
      .better = replay::Better::larger,
      .limits = replay::limits::share,
      .applies = "every document"},
     "top1",
     [](const PassSums& s) { return s.same_top; },
     &PassSums::tokens},
    {{.name = "key_nll",
      .meaning = "nll of the key tokens; its exponential is the key-token perplexity (LongPPL)",
      .better = replay::Better::smaller,
      .limits = replay::limits::at_least_zero,
      .applies = "documents with key tokens"},
     "key_nll",
     [](const PassSums& s) { return s.key_nll; },
     &PassSums::key_tokens,
     false},
});

/// The measure of this name. A name that the table lacks does not compile.
consteval const DamageMetric& damage(std::string_view name) {
  for (const DamageMetric& metric : damage_metrics) {
    if (metric.info.name == name) return metric;
  }
  throw "no such measure of damage";
}

}  // namespace kvbench::eval
