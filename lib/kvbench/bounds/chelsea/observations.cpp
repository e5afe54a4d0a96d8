// SPDX-License-Identifier: Apache-2.0
// Chelsea (arXiv 2506.11418), observations 1 and 2 and Fig. 3: the cosine of keys l tokens apart, s(l), falls with l
// and is convex in it, within a region of 256 tokens. Theorem 6.1 assumes both, at every l.
//   chelsea.obs1  s falls: from octave to octave of l (the trend), and from each l to the next (what the theorem
//                 assumes)
//   chelsea.obs2  s is convex: slopes between octaves increase, and s(l) + s(l+2) >= 2 s(l+1) at each l
// The claim is about the mean over heads, as in Fig. 3, and tested over layers and texts; rows of kind data show single
// heads, over blocks of 64 tokens. docs/theory/chelsea.observations.md.
#include <kvbench/bounds/chelsea/checks.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include <kvbench/bounds/trials/contrast.hpp>
#include <kvbench/bounds/trials/law_tests.hpp>
#include <kvbench/core/place_test.hpp>
#include <kvbench/trace/layer_spread.hpp>

namespace kvbench::bounds {
namespace {

constexpr Index most_lags = 255, block_tokens = 64, most_tokens = 4096;
constexpr std::size_t most_heads = 64;

std::vector<double> unit_rows(std::span<const float> keys, std::size_t d) {
  std::vector<double> rows(keys.begin(), keys.end());
  for (std::size_t i = 0; i < rows.size(); i += d) {
    double square = 0;
    for (std::size_t c = 0; c < d; ++c) square += rows[i + c] * rows[i + c];
    for (std::size_t c = 0; c < d && square > 0; ++c) rows[i + c] /= std::sqrt(square);
  }
  return rows;
}

std::vector<double> mean_curve(const LagCurves& curves) {
  std::vector<double> mean(curves.front().size());
  for (const auto& curve : curves) {
    for (std::size_t l = 0; l < mean.size(); ++l) mean[l] += curve[l] / static_cast<double>(curves.size());
  }
  return mean;
}

/// values[k][b] = of(curve of block b)[k]
template <class F>
std::vector<std::vector<double>> by_inequality(const LagCurves& curves, F of) {
  std::vector<std::vector<double>> values;
  for (const auto& curve : curves) {
    const std::vector<double> terms = of(curve);
    values.resize(terms.size());
    for (std::size_t k = 0; k < terms.size(); ++k) values[k].push_back(terms[k]);
  }
  return values;
}

/// Means over the lags 1, 2-3, 4-7, ... and their mean lags.
struct Octaves {
  std::vector<double> lag, value;
};
Octaves octaves(const std::vector<double>& curve) {
  Octaves out;
  for (std::size_t begin = 1; begin <= curve.size(); begin *= 2) {
    const std::size_t end = std::min(2 * begin, curve.size() + 1);
    double sum = 0;
    for (std::size_t l = begin; l < end; ++l) sum += curve[l - 1];
    out.value.push_back(sum / static_cast<double>(end - begin));
    out.lag.push_back(static_cast<double>(begin + end - 1) / 2);
  }
  return out;
}

/// The inequalities of a check: from octave to octave, which is the trend, or at every distance.
std::vector<std::vector<double>> inequalities(const LagCurves& curves, bool convex, bool octaves) {
  if (convex) return octaves ? convex_by_octave(curves) : convex_by_lag(curves);
  return octaves ? falls_by_octave(curves) : falls_by_lag(curves);
}

std::string shape_text(const ShapeTest& test, const std::vector<double>& curve, bool convex) {
  return fmt::format(
      "{} of {} inequalities have a negative mean, {} an interval below 0 (95 %), smallest mean {:.2g}; "
      "s(1) = {:.3f}, s({}) = {:.3f}; {}",
      test.broken, test.tested, test.broken_surely, test.worst, curve.front(), curve.size(), curve.back(),
      convex ? fmt::format("largest distance from a convex curve {:.1f} % of the range", 100 * convex_gap(curve))
             : fmt::format("the best decreasing curve explains {:.3f} of the variance", decreasing_r2(curve)));
}

/// Sums of curves, by unit.
struct MeanCurves {
  LagCurves sums;
  double count = 0;

  void add(const LagCurves& curves) {
    if (sums.empty()) sums.assign(curves.size(), std::vector<double>(curves.front().size()));
    if (sums.size() != curves.size() || sums.front().size() != curves.front().size()) return;  // another length
    for (std::size_t u = 0; u < sums.size(); ++u)
      std::ranges::transform(sums[u], curves[u], sums[u].begin(), std::plus());
    ++count;
  }
  LagCurves mean() const {
    LagCurves means = sums;
    for (auto& curve : means) {
      for (double& x : curve) x /= count;
    }
    return means;
  }
};

class Observation {
 public:
  Observation(CheckContext& context, bool convex) : context_(context), convex_(convex) {}

  void run() {
    const trace::TraceInfo& info = context_.reader->info();
    const auto subjects = trace_subjects(*context_.reader, {}, {}, 1);
    const std::size_t places = subjects.size() / static_cast<std::size_t>(info.num_kv_heads);
    const std::size_t each = std::max<std::size_t>(1, most_heads / std::max<std::size_t>(1, places));
    for (std::size_t s = 0; s < subjects.size(); ++s) {  // the heads of a layer are adjacent
      if (s % static_cast<std::size_t>(info.num_kv_heads) >= each) continue;
      context_.poll();
      add_head(subjects[s].load(context_.backend));
    }
    add_claim(true);
    add_claim(false);
  }

 private:
  void add_head(const Subject& subject) {
    const LagCurves curves =
        lag_curves(subject.keys, subject.d(), std::min(most_lags, subject.tokens() / 4), block_tokens, most_tokens);
    if (curves.size() < 8)
      throw methods::Unavailable("the context is too short: intervals need at least 8 blocks of 64 tokens");
    blocks_.add(curves);
    places_[subject.prompt][subject.head.layer.value].add({mean_curve(curves)});
    for (const bool octave : {true, false}) {
      const ShapeTest test = test_shape(inequalities(curves, convex_, octave), over_blocks);
      CheckRow& row = context_.data({octave ? "octaves of distance" : "every distance", lags_of(curves)},
                                    {.measured = test.broken_share()}, shape_text(test, mean_curve(curves), convex_));
      row.prompt = subject.prompt;
      row.layer = subject.head.layer.value;
      row.kv_head = subject.head.head.value;
    }
  }

  static std::string lags_of(const LagCurves& curves) { return fmt::format("lags=1..{}", curves.front().size()); }

  /// The claim about the mean over heads: over layers and texts where these are units, otherwise over blocks of tokens.
  void add_claim(bool octave) {
    const trace::TraceInfo& info = context_.reader->info();
    std::set<std::int64_t> replayed, used;
    LagCurves of_places;
    for (const trace::PromptInfo& prompt : info.prompts) {
      for (const trace::LayerInfo& layer : prompt.layers) replayed.insert(layer.layer);
      for (const auto& [layer, curves] : places_[prompt.id]) {
        used.insert(layer);
        of_places.push_back(curves.mean().front());
      }
    }
    const std::vector<std::int64_t> numbers(replayed.begin(), replayed.end());
    const auto are_units = trace::layers_are_units(numbers, used.size(), info.layers_behind(numbers.size()));
    PlaceTest units;
    if (are_units && of_places.size() == used.size() * info.prompts.size())
      units = place_test(std::vector<double>(of_places.size()), used.size(), *are_units);
    const auto over_places = [&](std::span<const double> terms) {
      const PlaceTest test = place_test(terms, used.size(), *are_units);
      return TermTest{.mean = test.mean, .interval = test.interval, .p = test.p_value / 2};
    };
    const LagCurves curves = units.tested() ? of_places : blocks_.mean();
    const auto values = inequalities(curves, convex_, octave);
    const ShapeTest test = units.tested() ? test_shape(values, over_places) : test_shape(values, over_blocks);
    TwoWayTest result = decide_between(test.p_for, test.p_against);
    if (!are_units) result.p_value = 1;  // undecided
    result.units = units.tested() ? static_cast<Index>(units.units()) : std::ssize(curves);
    if (units.tested()) result.over_places = units_of(units, static_cast<std::size_t>(info.num_layers));
    context_.claim(
        {octave ? "octaves of distance (the trend)" : "every distance (what Theorem 6.1 assumes)", lags_of(curves)},
        result,
        shape_text(test, mean_curve(curves), convex_) +
            (units.tested() ? "; over " + result.over_places
             : are_units    ? "; over blocks of 64 tokens, for these texts alone"
                            : "; these layers cannot stand for the others, evenly spaced ones could"),
        {.measured = test.broken_share()});
  }

  CheckContext& context_;
  bool convex_;
  MeanCurves blocks_;                                                 // over heads, by block of tokens
  std::map<std::string, std::map<std::int64_t, MeanCurves>> places_;  // over heads and blocks, by prompt and layer
};

}  // namespace

LagCurves lag_curves(std::span<const float> keys, Index d, Index lags, Index block, Index max_tokens) {
  const auto width = static_cast<std::size_t>(d), count = static_cast<std::size_t>(lags);
  const auto tokens = std::min(static_cast<std::size_t>(max_tokens), keys.size() / width);
  if (lags < 1 || tokens <= count) return {};
  const std::size_t anchors = (tokens - count) / static_cast<std::size_t>(block) * static_cast<std::size_t>(block);
  const std::vector<double> rows = unit_rows(keys.subspan(0, tokens * width), width);
  LagCurves curves(anchors / static_cast<std::size_t>(block), std::vector<double>(count));
  for (std::size_t i = 0; i < anchors; ++i) {
    std::vector<double>& curve = curves[i / static_cast<std::size_t>(block)];
    for (std::size_t l = 1; l <= count; ++l) {
      const double *const a = rows.data() + i * width, *const b = rows.data() + (i + l) * width;
      double product = 0;
      for (std::size_t c = 0; c < width; ++c) product += a[c] * b[c];
      curve[l - 1] += product / static_cast<double>(block);
    }
  }
  return curves;
}

TermTest over_blocks(std::span<const double> terms) {
  const Contrast c = contrast(terms, 200);
  // Sign flips resolve no p-value that is small enough for the number of inequalities.
  return {.mean = c.mean, .interval = c.interval, .p = random_sign_bound(terms)};
}

ShapeTest test_shape(const std::vector<std::vector<double>>& values,
                     const std::function<TermTest(std::span<const double>)>& test_of) {
  ShapeTest test{.tested = std::ssize(values)};
  for (const auto& terms : values) {
    const TermTest term = test_of(terms);
    test.broken += term.mean < 0;
    test.broken_surely += term.interval.hi < 0;
    test.worst = std::min(test.worst, term.mean);
    test.p_against = std::min(test.p_against, term.mean < 0 ? term.p * static_cast<double>(test.tested) : 1);
    test.p_for = std::max(test.p_for, term.mean > 0 ? term.p : 1);
  }
  return test;
}

std::vector<std::vector<double>> falls_by_lag(const LagCurves& curves) {
  return by_inequality(curves, [](const std::vector<double>& s) {
    std::vector<double> terms;
    for (std::size_t l = 0; l + 1 < s.size(); ++l) terms.push_back(s[l] - s[l + 1]);
    return terms;
  });
}

std::vector<std::vector<double>> convex_by_lag(const LagCurves& curves) {
  return by_inequality(curves, [](const std::vector<double>& s) {
    std::vector<double> terms;
    for (std::size_t l = 0; l + 2 < s.size(); ++l) terms.push_back(s[l] + s[l + 2] - 2 * s[l + 1]);
    return terms;
  });
}

std::vector<std::vector<double>> falls_by_octave(const LagCurves& curves) {
  return by_inequality(curves, [](const std::vector<double>& s) {
    const Octaves o = octaves(s);
    std::vector<double> terms;
    for (std::size_t k = 0; k + 1 < o.value.size(); ++k) terms.push_back(o.value[k] - o.value[k + 1]);
    return terms;
  });
}

std::vector<std::vector<double>> convex_by_octave(const LagCurves& curves) {
  return by_inequality(curves, [](const std::vector<double>& s) {
    const Octaves o = octaves(s);
    std::vector<double> terms;
    for (std::size_t k = 0; k + 2 < o.value.size(); ++k) {
      const double near = (o.value[k + 1] - o.value[k]) / (o.lag[k + 1] - o.lag[k]);
      const double far = (o.value[k + 2] - o.value[k + 1]) / (o.lag[k + 2] - o.lag[k + 1]);
      terms.push_back(far - near);
    }
    return terms;
  });
}

double decreasing_r2(const std::vector<double>& curve) {
  std::vector<std::pair<double, double>> pools;  // sum, count
  for (const double x : curve) {
    pools.emplace_back(x, 1.0);
    while (pools.size() > 1) {
      const auto last = pools.back(), before = pools[pools.size() - 2];
      if (before.first / before.second >= last.first / last.second) break;
      pools.pop_back();
      pools.back() = {before.first + last.first, before.second + last.second};
    }
  }
  const double mean = kvbench::mean(curve);
  double total = 0, explained = 0;
  for (const double x : curve) total += (x - mean) * (x - mean);
  for (const auto& [sum, count] : pools) explained += count * std::pow(sum / count - mean, 2);
  return total > 0 ? explained / total : 1;
}

double convex_gap(const std::vector<double>& curve) {
  std::vector<std::size_t> hull;  // lower convex hull of (l, s(l))
  const auto above = [&](std::size_t a, std::size_t b, std::size_t c) {
    return (curve[b] - curve[a]) * static_cast<double>(c - a) >= (curve[c] - curve[a]) * static_cast<double>(b - a);
  };
  for (std::size_t l = 0; l < curve.size(); ++l) {
    while (hull.size() > 1 && above(hull[hull.size() - 2], hull.back(), l)) hull.pop_back();
    hull.push_back(l);
  }
  double gap = 0;
  for (std::size_t h = 0; h + 1 < hull.size(); ++h) {
    for (std::size_t l = hull[h]; l < hull[h + 1]; ++l) {
      const double share = static_cast<double>(l - hull[h]) / static_cast<double>(hull[h + 1] - hull[h]);
      gap = std::max(gap, curve[l] - (curve[hull[h]] + share * (curve[hull[h + 1]] - curve[hull[h]])));
    }
  }
  const auto [low, high] = std::ranges::minmax(curve);
  return high > low ? gap / (high - low) : 0;
}

Check chelsea_observation1() {
  return {.id = "chelsea.obs1",
          .paper = "Chelsea, arXiv 2506.11418, observations 1 and 2, Fig. 3",
          .statement = "keys are less similar the farther apart their tokens are, within 256 tokens",
          .scope = Scope::trace,
          .run = [](CheckContext& context) { Observation(context, false).run(); }};
}

Check chelsea_observation2() {
  return {.id = "chelsea.obs2",
          .paper = "Chelsea, arXiv 2506.11418, observation 2, Fig. 3",
          .statement = "the similarity of keys is convex in their distance, within 256 tokens",
          .scope = Scope::trace,
          .run = [](CheckContext& context) { Observation(context, true).run(); }};
}

}  // namespace kvbench::bounds
