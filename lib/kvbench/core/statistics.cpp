// SPDX-License-Identifier: Apache-2.0
// The only source that includes Boost.Math, which takes seconds to compile.
#include <kvbench/core/statistics.hpp>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numeric>

#include <boost/math/distributions/beta.hpp>
#include <boost/math/distributions/binomial.hpp>
#include <boost/math/distributions/gamma.hpp>
#include <boost/math/distributions/normal.hpp>
#include <boost/math/distributions/students_t.hpp>

#include <kvbench/kernels/philox.hpp>

namespace kvbench {

double quantile(std::vector<double> values, double q) {
  assert(!values.empty());
  const double rank = q * static_cast<double>(values.size() - 1);
  const auto low = static_cast<std::ptrdiff_t>(std::floor(rank));
  std::nth_element(values.begin(), values.begin() + low, values.end());
  const double at_low = values[static_cast<std::size_t>(low)];
  const double weight = rank - static_cast<double>(low);
  if (weight == 0) return at_low;
  const double at_high = *std::min_element(values.begin() + low + 1, values.end());
  if (at_high == at_low) return at_low;  // also correct where both are infinite
  return at_low + weight * (at_high - at_low);
}

double mean(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double standard_error(std::span<const double> values) {
  const double centre = mean(values);
  double squares = 0;
  for (const double x : values) squares += (x - centre) * (x - centre);
  const auto count = static_cast<double>(values.size());
  return std::sqrt(squares / (count - 1) / count);
}

namespace {

/// The number of times that each item is drawn in one resample; `which` separates the draws of rows and columns.
void draw_counts(std::uint32_t resample, std::uint32_t which, std::span<double> times) {
  std::ranges::fill(times, 0.0);
  const auto count = static_cast<std::uint32_t>(times.size());
  PhiloxBlock draw;
  for (std::uint32_t i = 0; i < count; ++i) {
    if (i % 4 == 0) draw = philox4x32({{resample, i / 4, which, 0}}, {});
    // Multiply-shift maps 32 bits to [0, count) with a bias below 2^-32 * count.
    times[std::uint64_t{draw.x[i % 4]} * count >> 32] += 1;
  }
}

}  // namespace

Interval bootstrap_mean(std::span<const double> sums, std::span<const double> counts, std::size_t cols, int resamples,
                        double tail) {
  assert(sums.size() == counts.size() && !sums.empty() && sums.size() % cols == 0);
  const std::size_t rows = sums.size() / cols;
  std::size_t observed = 0;
  for (std::size_t i = 0; i < rows; ++i) {
    observed += std::ranges::any_of(counts.subspan(i * cols, cols), [](double count) { return count != 0; });
  }
  if (observed < 2) return {NAN, NAN};
  std::vector<double> means, row_times(rows), col_times(cols, 1.0);
  for (int r = 0; r < resamples; ++r) {
    draw_counts(static_cast<std::uint32_t>(r), 0, row_times);
    if (cols > 1) draw_counts(static_cast<std::uint32_t>(r), 1, col_times);
    double sum = 0, count = 0;
    for (std::size_t i = 0; i < rows; ++i) {
      if (row_times[i] == 0) continue;
      for (std::size_t j = 0; j < cols; ++j) {
        if (col_times[j] == 0) continue;  // avoids 0 * infinity
        sum += row_times[i] * col_times[j] * sums[i * cols + j];
        count += row_times[i] * col_times[j] * counts[i * cols + j];
      }
    }
    if (count > 0) means.push_back(sum / count);
  }
  if (means.empty()) return {NAN, NAN};
  return {quantile(means, tail), quantile(means, 1 - tail)};
}

Interval log_normal_interval(std::span<const double> values, double more) {
  const auto n = static_cast<double>(values.size());
  if (std::ranges::any_of(values, [](double x) { return !(x > 0); }))
    return bootstrap_mean(values, std::vector<double>(values.size(), 1.0), 1);
  std::vector<double> logs;
  for (const double x : values) logs.push_back(std::log(x));
  const double error = standard_error(logs), variance = n * error * error;
  const double centre = mean(logs) + variance / 2;
  const double half =
      student_bound(0.95, n - 1) * std::sqrt(error * error + variance * variance / (2 * (n - 1)) + more * more);
  const double of_values = mean(values);
  return {std::min(std::exp(centre - half), of_values), std::max(std::exp(centre + half), of_values)};
}

Interval mean_square_interval(double mean, double count) {
  return {mean * count / 2 / gamma_quantile(0.975, count / 2), mean * count / 2 / gamma_quantile(0.025, count / 2)};
}

Interval clopper_pearson(std::int64_t failures, std::int64_t trials, double alpha) {
  assert(0 <= failures && failures <= trials && trials > 0);
  const auto k = static_cast<double>(failures), n = static_cast<double>(trials);
  return {failures == 0 ? 0 : beta_quantile(alpha / 2, k, n - k + 1),
          failures == trials ? 1 : beta_quantile(1 - alpha / 2, k + 1, n - k)};
}

std::vector<double> holm(std::span<const double> p_values, std::size_t family) {
  family = std::max(family, p_values.size());
  std::vector<std::size_t> order(p_values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return p_values[a] < p_values[b]; });
  std::vector<double> adjusted(p_values.size());
  double running = 0;
  for (std::size_t rank = 0; rank < order.size(); ++rank) {
    const double scaled = p_values[order[rank]] * static_cast<double>(family - rank);
    running = std::max(running, std::min(1.0, scaled));
    adjusted[order[rank]] = running;
  }
  return adjusted;
}

namespace {

constexpr double least_expected = 10;

struct ChiSquare {
  double statistic = 0, degrees = 0, variance = 0;
  bool impossible = false;
};

void add(const Stratum& stratum, ChiSquare& sum) {
  const double total = std::accumulate(stratum.counts.begin(), stratum.counts.end(), 0.0);
  double expected = 0, seen = 0, left = total, bins = 0, statistic = 0, reciprocals = 0;
  for (std::size_t i = 0; i < stratum.law.size(); ++i) {
    if (stratum.law[i] <= 0 && stratum.counts[i] > 0) sum.impossible = true;
    expected += stratum.law[i] * total;
    seen += stratum.counts[i];
    left -= stratum.law[i] * total;
    if (i + 1 < stratum.law.size() && (expected < least_expected || left < least_expected)) continue;
    if (expected <= 0) break;
    statistic += (seen - expected) * (seen - expected) / expected;
    reciprocals += total / expected;
    bins += 1;
    expected = seen = 0;
  }
  if (bins < 2) return;
  sum.statistic += statistic;
  sum.degrees += bins - 1;
  // The exact variance under the multinomial law (Haldane, 1937); 2 (bins - 1) in the limit.
  sum.variance += 2 * (bins - 1) + std::max(0.0, (reciprocals - bins * bins - 2 * bins + 2) / total);
}

}  // namespace

double stratified_chi_square(std::span<const Stratum> strata) {
  ChiSquare sum;
  for (const Stratum& stratum : strata) add(stratum, sum);
  if (sum.impossible) return 0;
  if (sum.degrees == 0) return 1;
  return gamma_tail(sum.statistic * sum.degrees / sum.variance, sum.degrees * sum.degrees / sum.variance);
}

double slope(std::span<const double> x, std::span<const double> y) {
  assert(x.size() == y.size() && x.size() >= 2);
  const double mean_x = mean(x), mean_y = mean(y);
  double xy = 0, xx = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    xy += (x[i] - mean_x) * (y[i] - mean_y);
    xx += (x[i] - mean_x) * (x[i] - mean_x);
  }
  return xy / xx;
}

Interval student_interval(std::span<const double> values) {
  const double centre = mean(values);
  const double half = student_bound(0.95, static_cast<double>(values.size()) - 1) * standard_error(values);
  return {centre - half, centre + half};
}

namespace {

namespace math = boost::math;
namespace policies = boost::math::policies;

/// Results are NaN or infinite where Boost.Math would throw.
using Quiet =
    policies::policy<policies::domain_error<policies::ignore_error>, policies::pole_error<policies::ignore_error>,
                     policies::overflow_error<policies::ignore_error>,
                     policies::evaluation_error<policies::ignore_error>, policies::promote_double<false>>;
using Beta = math::beta_distribution<double, Quiet>;
using Binomial = math::binomial_distribution<double, Quiet>;
using Gamma = math::gamma_distribution<double, Quiet>;
using Normal = math::normal_distribution<double, Quiet>;
using Student = math::students_t_distribution<double, Quiet>;

Binomial binomial(std::int64_t trials, double probability) {
  return {static_cast<double>(trials), std::clamp(probability, 0.0, 1.0)};
}

}  // namespace

double binomial_head(std::int64_t count, std::int64_t trials, double probability) {
  return count >= trials ? 1 : cdf(binomial(trials, probability), static_cast<double>(count));
}

double binomial_tail(std::int64_t failures, std::int64_t trials, double probability) {
  assert(0 <= failures && failures <= trials);
  if (failures == 0) return 1;
  return cdf(complement(binomial(trials, probability), static_cast<double>(failures - 1)));
}

double beta_quantile(double p, double a, double b) { return quantile(Beta(a, b), p); }

double gamma_tail(double x, double shape) { return cdf(complement(Gamma(shape), x)); }

double gamma_quantile(double p, double shape) { return quantile(Gamma(shape), p); }

double student_tail(double t, double degrees) { return cdf(complement(Student(degrees), t)); }

double normal_quantile(double p) { return quantile(Normal(0, 1), p); }

double student_p(double t, double degrees) { return 2 * student_tail(std::abs(t), degrees); }

double student_bound(double level, double degrees) { return quantile(complement(Student(degrees), (1 - level) / 2)); }

}  // namespace kvbench
