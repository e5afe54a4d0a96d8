// SPDX-License-Identifier: Apache-2.0
#include <kvbench/methods/quantisation/lloyd_max.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <mutex>
#include <numbers>
#include <utility>

namespace kvbench::methods {
namespace {

/// 2^bits levels in the middle of equal parts of [-reach, reach].
std::vector<double> equal_steps(double reach, int bits) {
  const int count = 1 << bits;
  std::vector<double> levels;
  for (int i = 0; i < count; ++i) levels.push_back(-reach + 2 * reach * (i + 0.5) / count);
  return levels;
}

/// Iterates until no level moves by `tolerance` or more. mean(a, b, old) is the mean of the density between a and b;
/// `end` bounds its support.
template <class Mean>
std::vector<double> lloyd_max(std::vector<double> levels, double end, int iterations, double tolerance, Mean mean) {
  const std::size_t count = levels.size();
  for (int k = 0; k < iterations; ++k) {
    std::vector<double> moved;
    double largest = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const double low = i == 0 ? -end : (levels[i - 1] + levels[i]) / 2;
      const double high = i + 1 == count ? end : (levels[i] + levels[i + 1]) / 2;
      moved.push_back(mean(low, high, levels[i]));
      largest = std::max(largest, std::fabs(moved[i] - levels[i]));
    }
    if (largest < tolerance) break;
    levels = std::move(moved);
  }
  return levels;
}

Codebook codebook_of(const std::vector<double>& levels) {
  Codebook book{.levels = {levels.begin(), levels.end()}};
  for (std::size_t i = 0; i + 1 < levels.size(); ++i)
    book.midpoints.push_back((book.levels[i] + book.levels[i + 1]) / 2);
  return book;
}

template <class F>
double simpson(F f, double a, double b) {
  constexpr int steps = 128;
  const double h = (b - a) / steps;
  double sum = f(a) + f(b);
  for (int i = 1; i < steps; ++i) sum += (i % 2 == 1 ? 4 : 2) * f(a + i * h);
  return sum * h / 3;
}

template <class F>
double trapezoids(F f, double a, double b) {
  constexpr int steps = 200;
  const double h = (b - a) / steps;
  double sum = 0.5 * (f(a) + f(b));
  for (int i = 1; i < steps; ++i) sum += f(a + i * h);
  return sum * h;
}

Codebook make_sphere_codebook(Index d, int bits) {
  // With x = sin t, the density becomes cos(t)^(d - 2), which is smooth for every d >= 2, and the integral of x has a
  // closed form. Beyond 12 standard deviations there is less mass than fp64 resolves.
  const auto power = static_cast<double>(d - 2);
  const double sigma = 1 / std::sqrt(static_cast<double>(d));
  const double end = std::sin(std::min(std::numbers::pi / 2, 12 * sigma));
  const auto mean = [&](double a, double b, double) {
    const auto moment = [&](double x) { return -std::pow(1 - x * x, (power + 1) / 2) / (power + 1); };
    const double mass =
        simpson([&](double t) { return std::pow(std::max(0.0, std::cos(t)), power); }, std::asin(a), std::asin(b));
    return (moment(b) - moment(a)) / mass;
  };
  std::vector<double> levels = lloyd_max(equal_steps(std::min(0.99, 3.5 * sigma), bits), end, 20'000, 1e-12, mean);
  for (std::size_t i = 0; i < levels.size() / 2; ++i) {
    const std::size_t j = levels.size() - 1 - i;
    levels[j] = (levels[j] - levels[i]) / 2;
    levels[i] = -levels[j];
  }
  return codebook_of(levels);
}

Codebook make_vllm_codebook(Index d, int bits) {
  const double variance = 1.0 / static_cast<double>(d), reach = 3.5 * std::sqrt(variance);
  const auto density = [&](double x) {
    return 1 / std::sqrt(2 * std::numbers::pi * variance) * std::exp(-x * x / (2 * variance));
  };
  const auto mean = [&](double a, double b, double old) {
    const double mass = trapezoids(density, a, b);
    return mass > 1e-15 ? trapezoids([&](double x) { return x * density(x); }, a, b) / mass : old;
  };
  return codebook_of(lloyd_max(equal_steps(reach, bits), 3 * reach, 200, 1e-10, mean));
}

/// Every head asks for the same codebooks, each of which takes milliseconds.
template <Codebook (*make)(Index, int)>
std::shared_ptr<const Codebook> made_once(Index d, int bits) {
  static std::mutex mutex;
  static std::map<std::pair<Index, int>, std::shared_ptr<const Codebook>> made;
  const std::lock_guard lock(mutex);
  std::shared_ptr<const Codebook>& book = made[{d, bits}];
  if (!book) book = std::make_shared<const Codebook>(make(d, bits));
  return book;
}

}  // namespace

std::shared_ptr<const Codebook> sphere_codebook(Index d, int bits) { return made_once<make_sphere_codebook>(d, bits); }
std::shared_ptr<const Codebook> vllm_codebook(Index d, int bits) { return made_once<make_vllm_codebook>(d, bits); }

namespace {

constexpr int most_iterations = 50;  // max_iter of the released code

/// Sums of the first numbers of a list: each iteration needs a few of them. Those at multiples of a step are kept.
class FirstSums {
 public:
  explicit FirstSums(const std::vector<float>& numbers) : numbers_(numbers) {
    for (std::size_t i = 0; i <= numbers.size(); i += step) kept_.push_back(i == 0 ? 0 : of(i - step, i));
  }
  double first(std::size_t count) const { return of(count / step * step, count); }

 private:
  static constexpr std::size_t step = 64;
  /// Of the first `end` numbers; the sum of the first `begin` ones is kept.
  double of(std::size_t begin, std::size_t end) const {
    double sum = kept_[begin / step];
    for (std::size_t i = begin; i < end; ++i) sum += numbers_[i];
    return sum;
  }

  const std::vector<float>& numbers_;
  std::vector<double> kept_;
};

/// The means of the sorted numbers nearest to each level.
std::vector<double> nearest_means(const std::vector<float>& sorted, const FirstSums& sums, std::vector<double> levels) {
  const std::vector<double> before = levels;
  std::size_t begin = 0;
  for (std::size_t k = 0; k < levels.size(); ++k) {
    std::size_t end = sorted.size();
    if (k + 1 < levels.size()) {
      const double middle = (before[k] + before[k + 1]) / 2;
      end = static_cast<std::size_t>(std::ranges::lower_bound(sorted, middle) - sorted.begin());
    }
    end = std::max(begin, end);
    if (end > begin) levels[k] = (sums.first(end) - sums.first(begin)) / static_cast<double>(end - begin);
    begin = end;
  }
  return levels;
}

}  // namespace

Codebook fitted_codebook(std::vector<float> numbers, int bits) {
  std::ranges::sort(numbers);
  const FirstSums sums(numbers);
  const std::size_t n = numbers.size(), count = std::size_t{1} << bits;
  std::vector<double> levels(count);
  for (std::size_t k = 0; k < count && n > 0; ++k) levels[k] = numbers[((2 * k + 1) * n - 1) / (2 * count)];
  for (int i = 0; i < most_iterations; ++i) {
    std::vector<double> next = nearest_means(numbers, sums, levels);
    if (next == levels) break;
    levels = std::move(next);
  }
  Codebook book{{levels.begin(), levels.end()}, {}};
  for (std::size_t k = 0; k + 1 < count; ++k) book.midpoints.push_back((book.levels[k] + book.levels[k + 1]) / 2);
  return book;
}

}  // namespace kvbench::methods
