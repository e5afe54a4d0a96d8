// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/replay/ranked_figure.hpp>

#include <kvbench/report/text/text.hpp>

namespace kvbench::report {

using replay::RankingFigure;

namespace {

const char* mark_in(const RankingFigure& figure, const replay::Record& r) {
  return figure.outside(r).empty() ? mark_of(figure, figure.mean(r)) : "outside: ";
}

}  // namespace

static_assert(replay::largest_predicted == 0.15);  // as notes_of() and captions say

bool is_large(const replay::Record& r) { return !r.is_outside() && r.ranked_mean() > r.figure().largest; }
bool says_size(const replay::Record& r) { return !is_large(r) && !r.is_outside(); }

const char* mark_of(const RankingFigure& figure, double mean) { return mean > figure.largest ? "large: " : ""; }
const char* mark_of(const replay::Record& r) { return mark_in(r.figure(), r); }

std::string figure_text(const RankingFigure& figure, const replay::Record& r) {
  return mark_in(figure, r) + short_number(figure.mean(r));
}

void rank_by(replay::Record& r, replay::FigureNumber figure) {
  if (&r.figure() == &figure_of(figure)) return;
  r.ranked_by = figure;
  r.geomean = NAN;
  forget_test(r);
}

void forget_test(replay::Record& r) {
  r.best.clear(), r.tested_over.clear(), r.tied.reset();
  r.diff_best = r.ratio_best = NAN;
  r.diff_best_interval = r.ratio_best_interval = {NAN, NAN};
}

}  // namespace kvbench::report
