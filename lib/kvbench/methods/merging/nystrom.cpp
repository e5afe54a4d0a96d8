// SPDX-License-Identifier: Apache-2.0
#include <kvbench/methods/merging/nystrom.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace kvbench::methods {
namespace {

constexpr double spanned = 1e-10;  ///< a key of whose diagonal less is left is a combination of those chosen
/// 2 rho, as released: rho = sqrt(1 + exp(W(2 / e^2) + 2)). The comment beside it has 2 W in place of W.
constexpr double two_rho = 6.383202050647408;

/// W(x), W exp(W) = x, for x > 0: Newton's method, which falls to the root from above.
double lambert_w(double x) {
  double w = std::log1p(x);
  for (int i = 0; i < 20; ++i) w -= (w - x * std::exp(-w)) / (1 + w);
  return w;
}

/// K is D G D, D = exp(|k|^2 / 2) and G the Gaussian kernel, whose diagonal is 1: G is near F^T F, and no number of
/// G or F overflows.
class PivotedCholesky {
 public:
  PivotedCholesky(std::span<const double> keys, Index d) : keys_(keys), d_(static_cast<std::size_t>(d)) {
    for (std::size_t j = 0; j < keys.size(); j += d_) squares_.push_back(product(j / d_, j / d_));
    left_.assign(squares_.size(), 1);
  }

  /// The next key by this uniform number; absent where all are spanned.
  bool add(double uniform) {
    std::vector<double> logs;
    double most = -std::numeric_limits<double>::infinity();
    for (std::size_t j = 0; j < left_.size(); ++j) {
      logs.push_back(std::log(left_[j]) + squares_[j]);  // -inf where nothing is left
      most = std::max(most, logs[j]);
    }
    if (most == -std::numeric_limits<double>::infinity()) return false;
    double total = 0;
    for (double& x : logs) total += x = std::exp(x - most);
    double sum = 0;
    std::size_t pivot = 0;
    for (std::size_t j = 0; j < logs.size() && sum < uniform * total; ++j) {
      sum += logs[j];
      if (logs[j] > 0) pivot = j;
    }
    eliminate(pivot);
    return true;
  }

  const std::vector<std::size_t>& pivots() const { return pivots_; }

  /// K_SS^-1 K_S,all [pivots, n], in the order of the pivots. With L = F_S^T it is L^-T F.
  std::vector<double> weights() const {
    const std::size_t n = squares_.size();
    std::vector<double> w = factor_;
    for (std::size_t a = pivots_.size(); a-- > 0;) {
      double* const row = w.data() + a * n;
      const double* const own = factor_.data() + a * n;
      for (std::size_t b = a + 1; b < pivots_.size(); ++b) subtract(own[pivots_[b]], w.data() + b * n, row);
      for (std::size_t j = 0; j < n; ++j) row[j] /= own[pivots_[a]];
    }
    for (std::size_t i = 0; i < w.size(); ++i) w[i] *= std::exp((squares_[i % n] - squares_[pivots_[i / n]]) / 2);
    return w;
  }

 private:
  double product(std::size_t i, std::size_t j) const {
    const double* const a = keys_.data() + i * d_;
    return std::inner_product(a, a + d_, keys_.data() + j * d_, 0.0);
  }

  /// to -= factor * from, of rows [n].
  void subtract(double factor, const double* from, double* to) const {
    for (std::size_t j = 0; j < squares_.size(); ++j) to[j] -= factor * from[j];
  }

  /// Adds a row to F and takes its square from what is left of the diagonal.
  void eliminate(std::size_t pivot) {
    const std::size_t n = squares_.size();
    std::vector<double> row;
    for (std::size_t j = 0; j < n; ++j)
      row.push_back(std::min(1.0, std::exp(product(pivot, j) - (squares_[pivot] + squares_[j]) / 2)));
    for (std::size_t a = 0; a < pivots_.size(); ++a)
      subtract(factor_[a * n + pivot], factor_.data() + a * n, row.data());
    const double root = std::sqrt(left_[pivot]);
    for (std::size_t j = 0; j < n; ++j) {
      row[j] /= root;
      left_[j] -= row[j] * row[j];
      if (left_[j] < spanned) left_[j] = 0;
    }
    left_[pivot] = 0;
    factor_.insert(factor_.end(), row.begin(), row.end());
    pivots_.push_back(pivot);
  }

  std::span<const double> keys_;
  std::size_t d_;
  std::vector<double> squares_, left_;  ///< [n]
  std::vector<double> factor_;          ///< [pivots, n] F
  std::vector<std::size_t> pivots_;     ///< in the order in which they were chosen
};

}  // namespace

double kernel_temperature(Index n, double radius) {
  const double b = std::log(static_cast<double>(n)) / radius + 2;
  return b / (2 * lambert_w(b / two_rho));
}

Coreset nystrom_coreset(std::span<const double> keys, Index d, Index rank,
                        const std::function<double(Index)>& uniform) {
  PivotedCholesky chosen(keys, d);
  for (Index step = 0; step < rank && chosen.add(uniform(step)); ++step) {
  }
  const std::vector<std::size_t>& pivots = chosen.pivots();
  std::vector<std::size_t> order(pivots.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [&](std::size_t a) { return pivots[a]; });
  const std::size_t n = keys.size() / static_cast<std::size_t>(d);
  const std::vector<double> weights = chosen.weights();
  Coreset out;
  for (const std::size_t a : order) {
    out.members.push_back(static_cast<Index>(pivots[a]));
    const auto row = weights.begin() + static_cast<Index>(a * n);
    out.weights.insert(out.weights.end(), row, row + static_cast<Index>(n));
  }
  return out;
}

}  // namespace kvbench::methods
