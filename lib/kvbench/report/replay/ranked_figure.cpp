// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/replay/ranked_figure.hpp>

#include <kvbench/report/text/text.hpp>

namespace kvbench::report {

using replay::RankBy;

const FigureWords& figure_words(RankBy figure) {
  static constexpr FigureWords error{.key = "rel_err_mean",
                                     .quantity = "error",
                                     .title = "Error",
                                     .column = "rel_err",
                                     .name = "Mean relative error",
                                     .axis = "mean relative error",
                                     .meaning = "Mean of |z - z*| / |z*| over all queries, heads, layers and seeds"};
  static constexpr FigureWords residual{
      .key = "residual_err_rms",
      .quantity = "residual error",
      .title = "Residual error",
      .column = "residual_err",
      .name = "Root mean square residual error",
      .axis = "root mean square residual error",
      .meaning = "Root mean square of |W_O (z - z*)| / |x| over all queries, layers and seeds"};
  static constexpr FigureWords kl{
      .key = "kl_predicted",
      .quantity = "predicted KL",
      .title = "Predicted KL",
      .column = "predicted KL",
      .name = "Predicted KL",
      .axis = "predicted KL, nats per token",
      .meaning =
          "KL divergence of the model's next-token distributions that the errors cause, predicted from the "
          "probes of the trace, in nats per scored token",
      .unit = "KL "};
  return figure == RankBy::kl_predicted ? kl : figure == RankBy::residual_err ? residual : error;
}

bool is_large_prediction(const replay::Record& r) {
  return r.ranked_by == RankBy::kl_predicted && replay::is_large(r.kl) && !replay::is_outside(r.kl);
}

static_assert(replay::largest_predicted == 0.15);  // as notes_of() and captions say

bool says_size(const replay::Record& r) { return !is_large_prediction(r) && !r.is_outside(); }

const char* prediction_mark(RankBy figure, double mean) {
  return figure == RankBy::kl_predicted && mean > replay::largest_predicted ? "large: " : "";
}
const char* prediction_mark(const replay::PredictedKl& kl) {
  return replay::is_outside(kl) ? "outside: " : replay::is_large(kl) ? "large: " : "";
}
const char* prediction_mark(const replay::Record& r) {
  return r.ranked_by == RankBy::kl_predicted ? prediction_mark(r.kl) : "";
}

std::string predicted_text(const replay::PredictedKl& kl) { return prediction_mark(kl) + short_number(kl.mean); }

std::string ranked_text(const replay::Record& r) {
  return r.ranked_by == RankBy::kl_predicted ? predicted_text(r.kl) : short_number(r.mean_of(r.ranked_by));
}

Interval ranked_interval(const replay::Record& r) {
  if (r.ranked_by == RankBy::kl_predicted) return r.kl.interval;
  if (r.ranked_by == RankBy::residual_err) return {NAN, NAN};
  const replay::Summary& error = r.of(replay::Metric::rel_err);
  return {error.lo, error.hi};
}

void rank_by(replay::Record& r, RankBy figure) {
  if (r.ranked_by == figure || (r.by_error() && (figure == RankBy::rel_err || figure == RankBy::automatic))) return;
  r.ranked_by = figure;
  r.best.clear(), r.tested_over.clear(), r.tied.reset();
  r.diff_best = r.geomean = r.ratio_best = NAN;
  r.diff_best_interval = r.ratio_best_interval = {NAN, NAN};
}

}  // namespace kvbench::report
