// SPDX-License-Identifier: Apache-2.0
#include <kvbench/methods/stages/token_weights.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include <kvbench/methods/contract/method.hpp>

namespace kvbench::methods {

/// Columns of the Gram matrix of some tokens, and the linear term of the objective.
class GramColumns {
 public:
  /// `scale`: s of each row.
  GramColumns(const WeightFit& fit, std::span<const Index> tokens, std::span<const double> scale)
      : fit_(fit), count_(std::ssize(tokens)), scale_(scale.begin(), scale.end()) {
    const auto size = static_cast<std::size_t>(fit.rows_ * count_);
    shares_.resize(size);
    products_.resize(size);
    for (const Index token : tokens) {
      const auto from = fit.values_.begin() + token * fit.dv_;
      values_.insert(values_.end(), from, from + fit.dv_);
    }
    for (Index q = 0; q < fit.rows_; ++q) {
      scale_[static_cast<std::size_t>(q)] *= fit.inverse_[static_cast<std::size_t>(q)];
      for (Index j = 0; j < count_; ++j) {
        const double share =
            fit.shares_[static_cast<std::size_t>(q * fit.tokens_ + tokens[static_cast<std::size_t>(j)])];
        const auto at = static_cast<std::size_t>(q * count_ + j);
        shares_[at] = share;
        products_[at] = share * dot(value(j), fit.outputs_.data() + q * fit.dv_);
      }
    }
  }

  /// b_j = sum_q a_qj (s_q (v_j - z*_q) E_q + M_q), where E and M are what the whole context gives.
  std::vector<double> linear() const {
    std::vector<double> b(static_cast<std::size_t>(count_));
    for (Index q = 0; q < fit_.rows_; ++q) {
      const double* const pull = fit_.pull_.data() + q * fit_.dv_;
      const double s = scale_[static_cast<std::size_t>(q)], mass = fit_.mass_[static_cast<std::size_t>(q)];
      const double own = dot(fit_.outputs_.data() + q * fit_.dv_, pull);
      for (Index j = 0; j < count_; ++j)
        b[static_cast<std::size_t>(j)] += share(q, j) * (s * (dot(value(j), pull) - own) + mass);
    }
    return b;
  }

  std::vector<double> diagonal() const {
    std::vector<double> diagonal(static_cast<std::size_t>(count_));
    for (Index j = 0; j < count_; ++j) {
      const double square = dot(value(j), value(j));
      for (Index q = 0; q < fit_.rows_; ++q) {
        const double a = share(q, j), s = scale_[static_cast<std::size_t>(q)];
        diagonal[static_cast<std::size_t>(j)] += a * (s * (a * (square + norm(q)) - 2 * product(q, j)) + a);
      }
    }
    return diagonal;
  }

  /// G_jl for all j: sum_q a_qj a_ql (s_q (v_j - z*_q) (v_l - z*_q) + 1).
  std::vector<double> column(Index l) const {
    const auto size = static_cast<std::size_t>(count_);
    std::vector<double> column(size), common(size);  // common: what v_j v_l multiplies
    for (Index q = 0; q < fit_.rows_; ++q) {
      const double a = share(q, l), s = scale_[static_cast<std::size_t>(q)];
      if (a == 0) continue;
      const double both = s * a, alone = a * (s * norm(q) + 1) - s * product(q, l);
      const double* const shares = shares_.data() + q * count_;
      const double* const products = products_.data() + q * count_;
      for (std::size_t j = 0; j < size; ++j) {
        common[j] += both * shares[j];
        column[j] += alone * shares[j] - both * products[j];
      }
    }
    for (Index j = 0; j < count_; ++j)
      column[static_cast<std::size_t>(j)] += common[static_cast<std::size_t>(j)] * dot(value(j), value(l));
    return column;
  }

 private:
  template <class A, class B>
  double dot(const A* a, const B* b) const {
    double sum = 0;
    for (Index c = 0; c < fit_.dv_; ++c) sum += static_cast<double>(a[c]) * static_cast<double>(b[c]);
    return sum;
  }
  const double* value(Index j) const { return values_.data() + j * fit_.dv_; }
  double share(Index q, Index j) const { return shares_[static_cast<std::size_t>(q * count_ + j)]; }
  double product(Index q, Index j) const { return products_[static_cast<std::size_t>(q * count_ + j)]; }
  /// |z*_q|^2; where it is 0, s is 0 too.
  double norm(Index q) const {
    const double inverse = fit_.inverse_[static_cast<std::size_t>(q)];
    return inverse > 0 ? 1 / inverse : 0;
  }

  const WeightFit& fit_;
  Index count_;
  std::vector<double> scale_;     // [R] s_q / |z*_q|^2
  std::vector<double> shares_;    // [R, count]
  std::vector<double> products_;  // [R, count] a_qj v_j z*_q
  std::vector<double> values_;    // [count, dv]
};

namespace {

constexpr int most_sweeps = 300;
constexpr double least_gain = 1e-7;

/// Changes weight j to its best value, with the residual b - G w; returns by how much the objective falls.
double descend(std::size_t j, const std::vector<double>& column, double diagonal, std::vector<double>& residual,
               double& weight) {
  if (!(diagonal > 0)) return 0;
  const double step = std::max(-weight, residual[j] / diagonal);
  const double gain = step * (2 * residual[j] - step * diagonal);
  weight += step;
  for (std::size_t i = 0; i < residual.size(); ++i) residual[i] -= step * column[i];
  return gain;
}

/// The token without a column yet that lowers the objective most; the number of tokens where none does.
std::size_t best_token(const std::vector<double>& residual, const std::vector<double>& diagonal,
                       const std::vector<std::vector<double>>& columns) {
  std::size_t best = residual.size();
  double most = 0;
  for (std::size_t j = 0; j < residual.size(); ++j) {
    if (!columns[j].empty() || !(residual[j] > 0) || !(diagonal[j] > 0)) continue;
    const double gain = residual[j] * residual[j] / diagonal[j];
    if (gain > most) most = gain, best = j;
  }
  return best;
}

std::vector<Index> all_tokens(Index count) {
  std::vector<Index> tokens(static_cast<std::size_t>(count));
  std::iota(tokens.begin(), tokens.end(), 0);
  return tokens;
}

}  // namespace

void WeightFit::check_size(Index rows, Index tokens, Index kept) {
  if (std::max(rows, kept) <= most_pairs / std::max<Index>(tokens, 1)) return;
  throw Infeasible(
      fmt::format("weights of {} of {} tokens, fitted to {} query rows, exceed the limit of {} pairs of a token with a "
                  "row or a kept "
                  "token; use a shorter context, fewer queries or a smaller budget",
                  kept, tokens, rows, most_pairs));
}

WeightFit::WeightFit(Index dv, std::vector<float> shares, std::vector<float> values, std::span<const float> outputs)
    : rows_(std::ssize(outputs) / dv),
      tokens_(std::ssize(values) / dv),
      dv_(dv),
      shares_(std::move(shares)),
      values_(std::move(values)),
      outputs_(outputs.begin(), outputs.end()),
      inverse_(static_cast<std::size_t>(rows_)),
      mass_(static_cast<std::size_t>(rows_)),
      pull_(outputs_.size()) {
  for (Index q = 0; q < rows_; ++q) {
    const double* const output = outputs_.data() + q * dv_;
    double* const pull = pull_.data() + q * dv_;
    double norm = 0, mass = 0;
    for (Index j = 0; j < tokens_; ++j) {
      const double share = shares_[static_cast<std::size_t>(q * tokens_ + j)];
      const float* const value = values_.data() + j * dv_;
      mass += share;
      for (Index c = 0; c < dv_; ++c) pull[c] += share * value[c];
    }
    for (Index c = 0; c < dv_; ++c) pull[c] -= mass * output[c], norm += output[c] * output[c];
    mass_[static_cast<std::size_t>(q)] = mass;
    inverse_[static_cast<std::size_t>(q)] = norm > 0 ? 1 / norm : 0;
  }
}

std::vector<Index> WeightFit::greedy(Index count) const {
  const std::vector<Index> every = all_tokens(tokens_);
  const GramColumns gram(*this, every, std::vector<double>(static_cast<std::size_t>(rows_), 1.0));
  const std::vector<double> diagonal = gram.diagonal();
  std::vector<double> residual = gram.linear(), weights(every.size());
  std::vector<std::vector<double>> columns(every.size());  // of the tokens taken so far
  std::vector<std::size_t> taken;
  for (Index kept = 0; kept < count;) {
    const std::size_t best = best_token(residual, diagonal, columns);
    if (best == every.size()) break;
    columns[best] = gram.column(static_cast<Index>(best));
    taken.push_back(best);
    for (std::size_t k = taken.size(); k-- > 0;)
      descend(taken[k], columns[taken[k]], diagonal[taken[k]], residual, weights[taken[k]]);
    kept = std::ranges::count_if(weights, [](double weight) { return weight > 0; });
  }
  std::vector<Index> chosen;
  for (std::size_t t = 0; t < weights.size(); ++t) {
    if (weights[t] > 0) chosen.push_back(static_cast<Index>(t));
  }
  return chosen;
}

std::vector<double> WeightFit::fit(std::span<const Index> tokens, std::span<const double> start,
                                   std::span<const double> row_scale) const {
  const GramColumns gram(*this, tokens, row_scale);
  std::vector<double> residual = gram.linear(), weights(start.begin(), start.end());
  std::vector<std::vector<double>> columns;
  double whole = 0;  // the objective without tokens
  for (std::size_t q = 0; q < mass_.size(); ++q) {
    double pull = 0;
    for (Index c = 0; c < dv_; ++c)
      pull += std::pow(pull_[q * static_cast<std::size_t>(dv_) + static_cast<std::size_t>(c)], 2);
    whole += row_scale[q] * inverse_[q] * pull + mass_[q] * mass_[q];
  }
  for (std::size_t k = 0; k < tokens.size(); ++k) {
    columns.push_back(gram.column(static_cast<Index>(k)));
    for (std::size_t i = 0; i < residual.size(); ++i) residual[i] -= weights[k] * columns[k][i];
  }
  for (int sweep = 0; sweep < most_sweeps; ++sweep) {
    double gain = 0;
    for (std::size_t k = 0; k < tokens.size(); ++k) gain += descend(k, columns[k], columns[k][k], residual, weights[k]);
    if (gain <= least_gain * whole) break;
  }
  return weights;
}

std::vector<double> WeightFit::denominators(std::span<const Index> tokens, std::span<const double> weights) const {
  std::vector<double> sums(mass_.size());
  for (std::size_t q = 0; q < sums.size(); ++q) {
    sums[q] = 1 - mass_[q];
    for (std::size_t k = 0; k < tokens.size(); ++k)
      sums[q] += weights[k] * shares_[q * static_cast<std::size_t>(tokens_) + static_cast<std::size_t>(tokens[k])];
  }
  return sums;
}

std::vector<double> WeightFit::weights(std::span<const Index> tokens, std::span<const double> start) const {
  std::vector<double> best(start.begin(), start.end()), scale(mass_.size(), 1.0);
  double least = mean_error(tokens, best);
  for (int round = 0; round < 2; ++round) {
    const std::vector<double> fitted = fit(tokens, best, scale);
    const double error = mean_error(tokens, fitted);
    if (error < least) least = error, best = fitted;
    const std::vector<double> sums = denominators(tokens, fitted);
    for (std::size_t q = 0; q < scale.size(); ++q) scale[q] = 1 / std::pow(std::max(sums[q], 0.1), 2);
  }
  return best;
}

double WeightFit::mean_error(std::span<const Index> tokens, std::span<const double> weights) const {
  const std::vector<double> sums = denominators(tokens, weights);
  const auto dv = static_cast<std::size_t>(dv_);
  double errors = 0, rows = 0;
  for (std::size_t q = 0; q < sums.size(); ++q) {
    if (!(inverse_[q] > 0)) continue;
    std::vector<double> residual(dv);
    for (std::size_t c = 0; c < dv; ++c) residual[c] = -pull_[q * dv + c];
    for (std::size_t k = 0; k < tokens.size(); ++k) {
      const auto token = static_cast<std::size_t>(tokens[k]);
      const double part = weights[k] * shares_[q * static_cast<std::size_t>(tokens_) + token];
      for (std::size_t c = 0; c < dv; ++c) residual[c] += part * (values_[token * dv + c] - outputs_[q * dv + c]);
    }
    double square = 0;
    for (const double r : residual) square += r * r;
    // Without any attention the answer is 0.
    errors += sums[q] > 0 ? std::sqrt(square * inverse_[q]) / sums[q] : 1;
    rows += 1;
  }
  return rows > 0 ? errors / rows : 0;
}

}  // namespace kvbench::methods
