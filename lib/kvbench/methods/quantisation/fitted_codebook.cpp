// SPDX-License-Identifier: Apache-2.0
#include <kvbench/methods/quantisation/fitted_codebook.hpp>

#include <algorithm>
#include <cstddef>

namespace kvbench::methods {
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
