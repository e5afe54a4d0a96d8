// SPDX-License-Identifier: Apache-2.0
// A literal transcription of SubGen, arXiv 2402.06082, Algorithm 1: lists, distances in fp64, one coin per slot and token.
#pragma once

#include <cmath>
#include <random>

#include "fixtures.hpp"

namespace kvbench::test {

class LiteralSubgen {
 public:
  struct Cluster {
    Index x;               ///< token of the representative
    std::vector<Index> S;  ///< tokens of the t samples
    Index n;
  };

  LiteralSubgen(const Tokens& tokens, double delta, Index t, Index s, unsigned seed)
      : tokens_(tokens), delta_(delta), t_(t), M(static_cast<std::size_t>(s), -1), coin_(seed) {}

  /// Lines 4 to 6 for token i.
  void update(Index i) {
    update_softmax_normalizer(i);
    update_matrix_product(i);
    mu += tokens_.norm2(i);
  }

 private:
  const Tokens& tokens_;
  double delta_;
  Index t_;

 public:
  double mu = 0;             ///< line 2
  std::vector<Cluster> D;    ///< line 2
  std::vector<Index> M;      ///< line 2; -1 = null
  std::vector<Index> label;  ///< not in the listing: the cluster of each token

 private:
  double distance(Index i, Index j) const {
    double sum = 0;
    for (Index c = 0; c < tokens_.d; ++c) {
      const double difference = static_cast<double>(tokens_.key(i)[c]) - tokens_.key(j)[c];
      sum += difference * difference;
    }
    return std::sqrt(sum);
  }
  bool flip(double p) { return std::uniform_real_distribution<double>(0, 1)(coin_) < p; }

  void update_softmax_normalizer(Index i) {
    std::size_t nearest = 0;  // line 12
    for (std::size_t c = 1; c < D.size(); ++c) {
      if (distance(D[c].x, i) < distance(D[nearest].x, i)) nearest = c;
    }
    if (!D.empty() && distance(D[nearest].x, i) <= delta_) {  // line 13
      Cluster& cluster = D[nearest];
      cluster.n += 1;
      for (Index& sample : cluster.S) {  // lines 16, 17
        if (flip(1.0 / static_cast<double>(cluster.n))) sample = i;
      }
    } else {  // lines 20, 21
      nearest = D.size();
      D.push_back({.x = i, .S = std::vector<Index>(static_cast<std::size_t>(t_), i), .n = 1});
    }
    label.push_back(static_cast<Index>(nearest));
  }

  void update_matrix_product(Index i) {
    const double norm2 = tokens_.norm2(i);
    if (norm2 == 0) return;  // p = 0, or 0/0 before the first value that is not zero
    for (Index& slot : M) {  // lines 25, 26
      if (flip(norm2 / (mu + norm2))) slot = i;
    }
  }

  std::mt19937_64 coin_;
};

}  // namespace kvbench::test
