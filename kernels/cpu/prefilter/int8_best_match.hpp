// SPDX-License-Identifier: Apache-2.0
// Best matches with the bounds of int8_bounds.hpp: the remaining candidates are scored by the same chains of FMAs as in
// product_tile.hpp.
#pragma once

#include "../match_strips.hpp"
#include "int8_points.hpp"

namespace kvbench::kernels::cpu::KVBENCH_ISA {
namespace {

/// For the interface see NoMatchPrefilter.
class Int8MatchPrefilter {
 public:
  Int8MatchPrefilter(const Match& op, Context& context) : op_(op), context_(context) { usable_ = start(); }

  bool match(MatchStrip* strips, Index count) {
    if (!usable_) return false;
    Int8Strip points[kSearchStrips] = {};
    if (!set_strips(strips, count, points)) return false;
    const auto score = [&](Index point, Index candidate) { return rough_score(strips, point, candidate); };
    if (op_.moved.data != nullptr && !kTightBounds) start_from_own(strips, count, true, score, points);
    if (!find_survivors(search_, points, count, score)) return false;
    if (op_.score.data == nullptr) take_single(strips);
    choose(search_, strips);
    return true;
  }

  void set_moved(PointList moved) {
    if (!usable_) return;
    moved_numbers_ = moved.numbers;
    moved_ = copies(moved);
  }

  bool challenge(MatchStrip* strips, Index count) {
    if (!usable_) return false;
    Int8Strip points[kSearchStrips] = {};
    if (!set_strips(strips, count, points)) return false;
    const auto score = [&](Index point, Index candidate) { return rough_score(strips, point, candidate); };
    start_from_own(strips, count, false, score, points);
    Int8Search search = search_;
    search.candidates = moved_;
    const auto moved_score = [&](Index point, Index candidate) { return score(point, moved_numbers_[candidate]); };
    if (!find_survivors(search, points, count, moved_score)) return false;
    add_own(search, strips, count);
    choose(search, strips);
    return true;
  }

 private:
  /// To convert a row of d columns costs about as much as a point gains on 8192 / d candidates. A repeated search
  /// converts its points once.
  bool pays() const {
    const Index n = op_.points.rows, c = op_.candidates.rows;
    const Index pairs = op_.pairs > 0 ? op_.pairs : n * c;
    return pairs * op_.points.cols > 8192 * (op_.state == nullptr ? n + c : n / 4 + c);
  }

  /// Converts the candidates, and in the first call of a repeated search the points. False where the prefilter does not
  /// pay, is switched off, or cannot be used for these rows.
  bool start() {
    const auto& rows = op_.candidates;
    const Index d = op_.points.cols;
    if (rows.rows == 0) return false;
    if (op_.moved.data != nullptr) {
      if (op_.state == nullptr || !op_.state->usable) return false;
    } else {
      if (op_.state != nullptr) op_.state->usable = false;
      if (!wants_prefilter(context_, pays(), d)) return false;
      if (op_.state != nullptr) keep_points(*op_.state, op_.points);
    }
    search_ =
        op_.state != nullptr
            ? int8_search(int8_candidates(Int8Score::product, op_.state->centre, rows.rows, d, context_, 9), context_)
            : int8_search(Int8Score::product, rows, rows.rows, context_);
    for (Index i = 0; i < rows.rows; ++i)
      if (!set_candidate(search_.candidates, i, rows.data + i * rows.stride, bias(i))) return false;
    return true;
  }

  float bias(Index candidate) const {
    return op_.bias.data == nullptr ? 0 : op_.bias.data[candidate * op_.bias.stride];
  }

  /// The candidate that a point had in the previous call.
  std::int32_t own(const MatchStrip& strip, Index lane) const {
    return op_.best.data[strip.number(lane) * op_.best.stride];
  }

  /// In any order.
  float rough_score(const MatchStrip* strips, Index point, Index candidate) const {
    const float* row = op_.points.data + strips[point / kStrip].number(point % kStrip) * op_.points.stride;
    return rough_product(row, op_.candidates.data + candidate * op_.candidates.stride, op_.points.cols) +
           bias(candidate);
  }

  /// The candidates that the points had in the previous call are the best so far; `listed`: the search meets them.
  template <class Score>
  void start_from_own(const MatchStrip* strips, Index count, bool listed, Score score, Int8Strip* points) const {
    for (Index s = 0; s < count; ++s)
      for (Index lane = 0; lane < strips[s].count; ++lane) {
        const std::int32_t c = own(strips[s], lane);
        if (c < 0) continue;
        const float low = kTightBounds ? lower_bound(search_.candidates, *op_.state, strips[s].number(lane), c)
                                       : score(s * kStrip + lane, c) - points[s].frame[lane / W][lane % W];
        raise(points[s], lane, listed && !kTightBounds ? c : -1, low);
      }
  }

  /// The converted candidates of a list. Slots [4, 6).
  Int8Candidates copies(PointList list) {
    const Int8Candidates& all = search_.candidates;
    Int8Candidates some = int8_candidates(all.kind, all.centre, list.count, all.d, context_, 4);
    some.longest = all.longest;
    some.highest = all.highest;
    const Index pitch = int8_pitch(all.d), starts = int8_starts(all.d);
    for (Index i = 0; i < list.count; ++i) {
      const Index c = list[i];
      __builtin_memcpy(some.rows + i * pitch, all.rows + c * pitch, static_cast<std::size_t>(pitch));
      for (Index p = 0; p < starts; ++p) some.starts[i * starts + p] = all.starts[c * starts + p];
      set_numbers(some, i, all.numbers[c]);
    }
    return some;
  }

  /// False where a point cannot be used.
  bool set_strips(const MatchStrip* strips, Index count, Int8Strip* out) {
    for (Index s = 0; s < count; ++s)
      if (!set_strip(strips[s], search_.points + s * kStrip * int8_pitch(op_.points.cols), out[s])) return false;
    return true;
  }

  bool set_strip(const MatchStrip& points, std::uint8_t* packed, Int8Strip& strip) {
    strip.lanes = points.count;
    strip.begin = points.begin;
    strip.end = points.end;
    strip.all_begin = points.all_begin;
    strip.all_end = points.all_end;
    strip.self_begin = op_.skip_self ? points.point : 0;
    strip.self_end = op_.skip_self ? points.point + points.count : 0;
    for (int v = 0; v < 2; ++v) {
      strip.first[v] = points.first[v];
      strip.last[v] = points.last[v];
      strip.self[v] = points.self[v];
    }
    const auto point = [&](Index lane) { return points.number(lane < points.count ? lane : 0); };
    if (op_.state != nullptr) return set_kept_points(search_.candidates, *op_.state, point, packed, strip);
    const float* rows[kStrip];
    for (Index lane = 0; lane < kStrip; ++lane) rows[lane] = op_.points.data + point(lane) * op_.points.stride;
    return set_points(search_.candidates, rows, search_.rows, packed, strip);
  }

  /// Where no score is asked for, a point with one survivor needs none: it takes that candidate, and the survivors of
  /// the other points remain.
  void take_single(MatchStrip* strips) {
    std::int32_t survivors[kSearchStrips * kStrip] = {};
    for (Index i = 0; i < search_.count; ++i) ++survivors[search_.survivors[i].point];
    Index kept = 0;
    for (Index i = 0; i < search_.count; ++i) {
      const Survivor& s = search_.survivors[i];
      if (survivors[s.point] > 1)
        search_.survivors[kept++] = s;
      else
        strips[s.point / kStrip].index[s.point / W % 2][s.point % W] = s.candidate;
    }
    search_.count = kept;
  }

  /// Renumbers the survivors from the moved candidates to all candidates, and adds the own candidate of each point that
  /// has a survivor. The other points take theirs.
  void add_own(Int8Search& search, MatchStrip* strips, Index count) const {
    bool challenged[kSearchStrips * kStrip] = {};
    for (Index i = search.count; i-- > 0;) {
      Survivor& s = search.survivors[i];
      s.candidate = moved_numbers_[s.candidate];
      if (challenged[s.point]) continue;
      challenged[s.point] = true;
      search.survivors[search.count++] = {s.point, own(strips[s.point / kStrip], s.point % kStrip), 0};
    }
    for (Index s = 0; s < count; ++s)
      for (Index lane = 0; lane < strips[s].count; ++lane)
        if (!challenged[s * kStrip + lane]) strips[s].index[lane / W][lane % W] = own(strips[s], lane);
  }

  /// Scores the survivors, whose candidates are numbered as those of the operation, and keeps the best of each point.
  void choose(const Int8Search& search, MatchStrip* strips) const {
    score_survivors(
        search, [&](Index i) { return op_.points.data + strips[i / kStrip].number(i % kStrip) * op_.points.stride; },
        [&](Index i) { return op_.candidates.data + i * op_.candidates.stride; },
        [&](auto points, auto candidates, float* packed, float* scores) {
          pair_products(points, candidates, op_.points.cols, packed, scores);
        },
        [&](const Survivor& s, float score) {
          if (op_.bias.data != nullptr) score += bias(s.candidate);
          MatchStrip& strip = strips[s.point / kStrip];
          const int v = s.point / W % 2, lane = s.point % W;
          if (!(score > strip.best[v][lane] || (score == strip.best[v][lane] && s.candidate < strip.index[v][lane])))
            return;
          strip.best[v][lane] = score;
          strip.index[v][lane] = s.candidate;
        });
  }

  static_assert(kMatchGroup <= kSearchStrips);

  const Match& op_;
  Context& context_;
  bool usable_ = false;
  Int8Search search_ = {};
  Int8Candidates moved_ = {};
  const std::int32_t* moved_numbers_ = nullptr;
};

}  // namespace
}  // namespace kvbench::kernels::cpu::KVBENCH_ISA
