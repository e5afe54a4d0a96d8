// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/columns/metric_doc.hpp>

#include <fmt/format.h>

namespace kvbench::report {
namespace {

/// `by_tokens`: the metric for the same number of steps that counts tokens.
std::string cache_doc(replay::Metric metric, replay::Metric by_tokens, int steps) {
  const std::string_view name = name_of(metric);
  if (name.ends_with("_belady")) {
    return fmt::format(
        "share of a step's clusters that the optimal cache would hold, with room for the clusters of {} step(s)",
        steps);
  }
  return fmt::format("share of a step's {} that the last {} step(s) also selected",
                     metric == by_tokens ? "recalled tokens in clusters" : "clusters", steps);
}

}  // namespace

std::string doc_of_metric(replay::Metric metric) {
  switch (metric) {
    case replay::Metric::rel_err:
      return "|z - z*| / |z*|";
    case replay::Metric::relerr_balancekv:
      return "|z - z*| / |max(z*, 1e-8)|, the released BalanceKV formula";
    case replay::Metric::err_bound_op:
      return "|z - z*| / (|p|_2 |V|_op), SubGen Eq. 3";
    case replay::Metric::err_bound_fro:
      return "|z - z*| / (|p|_2 |V|_F), BalanceKV Eq. 2";
    case replay::Metric::mass_err:
      return "part of rel_err due to lost or gained attention mass";
    case replay::Metric::dir_err:
      return "part of rel_err due to the direction of the entries that replace dropped tokens";
    case replay::Metric::log_z_err:
      return "ln(estimated / exact partition function)";
    case replay::Metric::recall:
      return "share of the top-|I| tokens by q.k among the |I| kept, over droppable tokens";
    case replay::Metric::mass_recall:
      return "attention mass of the kept tokens / that of the top-|I|";
    case replay::Metric::cache_hit_r1:
    case replay::Metric::cache_hit_r1_clusters:
    case replay::Metric::cache_hit_r1_belady:
      return cache_doc(metric, replay::Metric::cache_hit_r1, 1);
    case replay::Metric::cache_hit_r2:
    case replay::Metric::cache_hit_r2_clusters:
    case replay::Metric::cache_hit_r2_belady:
      return cache_doc(metric, replay::Metric::cache_hit_r2, 2);
    case replay::Metric::cache_hit_r4:
    case replay::Metric::cache_hit_r4_clusters:
    case replay::Metric::cache_hit_r4_belady:
      return cache_doc(metric, replay::Metric::cache_hit_r4, 4);
    case replay::Metric::count:
      break;
  }
  return "";
}

}  // namespace kvbench::report
