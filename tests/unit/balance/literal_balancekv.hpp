// SPDX-License-Identifier: Apache-2.0
// A literal transcription of BalanceKV, arXiv 2502.07861, Algorithms 1 to 4: lists, fp64, one coin per step. The readings of
// balancekv.hpp apply.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include <kvbench/kernels/view.hpp>

namespace kvbench::test {

using Vector = std::vector<double>;

inline double inner(const Vector& a, const Vector& b) {
  double sum = 0;
  for (std::size_t c = 0; c < a.size(); ++c) sum += a[c] * b[c];
  return sum;
}
inline double norm(const Vector& a) { return std::sqrt(inner(a, a)); }

struct Pair {
  Index token = 0;
  Vector k, v;
};
using Pairs = std::vector<Pair>;

/// True with probability p (clamped) for this step.
using Coin = std::function<bool(const Pair&, double p)>;

/// c for a call on n tokens, or 0 for the greedy limit.
using Constant = std::function<double(Index n)>;

struct Balanced {
  std::vector<int> eta;
  Pairs output;
  Index fails = 0;
};

/// Algorithm 2. `a` is 1 / sqrt(d).
inline Balanced softmax_balance(const Pairs& stream, double a, double r_key, double r_value, const Constant& constant,
                                const Coin& coin) {
  Balanced result;
  const double R = std::exp(a * r_key * r_key / 2) * r_value;    // line 2
  const double c = constant(static_cast<Index>(stream.size()));  // line 3
  for (std::size_t j = 0; j < stream.size(); ++j) {              // line 5
    double y_eta = 0;
    for (std::size_t i = 0; i < j; ++i) {  // line 6
      y_eta += std::exp(a * inner(stream[i].k, stream[j].k)) * inner(stream[i].v, stream[j].v) * result.eta[i];
    }
    if (c == 0) {
      result.eta.push_back(y_eta > 0 ? -1 : 1);
      continue;
    }
    if (std::abs(y_eta) > c * R * R) ++result.fails;    // line 7
    const double p = 0.5 - y_eta / (2 * c * R * R);     // line 8
    result.eta.push_back(coin(stream[j], p) ? 1 : -1);  // line 9
  }
  const auto plus = std::count(result.eta.begin(), result.eta.end(), 1);
  const int side = 2 * plus <= std::ssize(stream) ? 1 : -1;  // lines 12 to 16
  for (std::size_t j = 0; j < stream.size(); ++j) {
    if (result.eta[j] == side) result.output.push_back(stream[j]);
  }
  return result;
}

/// Algorithm 4: the signs of the vectors u.
inline std::vector<int> self_balancing_walk(const Pairs& u, double r, double c, const Coin& coin) {
  std::vector<int> signs;
  Vector plus(u.front().v.size()), minus(u.front().v.size());  // line 3, as sums
  for (const Pair& pair : u) {
    const double difference = inner(plus, pair.v) - inner(minus, pair.v);
    signs.push_back(coin(pair, 0.5 - difference / (2 * c * r * r)) ? 1 : -1);  // lines 8, 9
    Vector& sum = signs.back() > 0 ? plus : minus;                             // line 10
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += pair.v[i];
  }
  return signs;
}

/// Algorithm 3. A coin depends on its level.
class LiteralMergeAndReduce {
 public:
  using Balance = std::function<Pairs(const Pairs&, Index level)>;
  LiteralMergeAndReduce(Index t, Index T, Balance balance) : t_(t), T_(T), balance_(std::move(balance)) {
    C.resize(static_cast<std::size_t>(T) + 1);  // line 3
  }

  std::vector<Pairs> C;

  void update(const Pair& pair) {
    C[0].push_back(pair);  // line 5
    ++j_;
    if (j_ % t_ != 0) return;                 // line 6
    double p = static_cast<double>(j_ / t_);  // line 10
    Index i = 0;
    while (p == std::floor(p) && i != T_) {  // line 11
      const auto level = static_cast<std::size_t>(i);
      for (const Pair& kept : balance_(C[level], i)) C[level + 1].push_back(kept);  // line 12
      C[level].clear();                                                             // line 13
      ++i;                                                                          // line 14
      p /= 2;                                                                       // line 15
    }
  }

 private:
  Index t_, T_, j_ = 0;
  Balance balance_;
};

/// Algorithm 1. Numbers of instances: 0 for D, then those of N in the order in which they open.
class LiteralBalanceKV {
 public:
  struct Settings {
    Index t, T;
    double a, eps, r, n;
    Constant constant;
    std::function<double(Index token, Index instance, Index level)> uniform;
  };
  explicit LiteralBalanceKV(Settings settings) : s(std::move(settings)), denominator_(instance(0, 0)) {}
  LiteralBalanceKV(const LiteralBalanceKV&) = delete;  // its instances refer to it
  LiteralBalanceKV& operator=(const LiteralBalanceKV&) = delete;

  void update(const Pair& pair) {
    const double size = norm(pair.v);
    if (size > 0) {
      const int i = static_cast<int>(std::ceil(std::log2(size)));  // line 4
      if (!numerators_.contains(i)) numerators_.emplace(i, instance(++opened_, std::exp2(i)));
      numerators_.at(i).update(pair);  // line 5
    }
    v_max_ = std::max(v_max_, size);                     // lines 6 to 8
    std::erase_if(numerators_, [&](const auto& entry) {  // line 9
      return std::exp2(entry.first) <= s.eps / (2 * s.n) * std::exp(-s.a * s.r * s.r) * v_max_;
    });
    denominator_.update({pair.token, pair.k, {1}});  // line 14
  }

  /// Token -> weights in numerator and denominator: line 16.
  std::map<Index, std::pair<double, double>> weights() const {
    std::map<Index, std::pair<double, double>> all;
    for (std::size_t l = 0; l < denominator_.C.size(); ++l) {
      for (const auto& [i, numerator] : numerators_) {
        for (const Pair& pair : numerator.C[l]) all[pair.token].first += std::exp2(l);
      }
      for (const Pair& pair : denominator_.C[l]) all[pair.token].second += std::exp2(l);
    }
    return all;
  }
  std::size_t buckets() const { return numerators_.size(); }

 private:
  /// r_value = 0: the instance of D, whose r_value is 1.
  LiteralMergeAndReduce instance(Index number, double r_value) const {
    const auto balance = [this, number, r_value](const Pairs& batch, Index level) {
      double r_key = 0;
      for (const Pair& pair : batch) r_key = std::max(r_key, norm(pair.k));
      return softmax_balance(batch, s.a, r_key, r_value == 0 ? 1 : r_value, s.constant,
                             [&](const Pair& pair, double p) { return s.uniform(pair.token, number, level) < p; })
          .output;
    };
    return {s.t, s.T, balance};
  }

  Settings s;
  LiteralMergeAndReduce denominator_;
  std::map<int, LiteralMergeAndReduce> numerators_;
  Index opened_ = 0;
  double v_max_ = 0;  // line 2
};

}  // namespace kvbench::test
