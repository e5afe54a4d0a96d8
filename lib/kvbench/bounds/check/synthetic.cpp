// SPDX-License-Identifier: Apache-2.0
// Streams on which the bounds of the theorems are not vacuous. Keys and queries are short, so that exponents are small;
// keys are in tight clusters or without structure; values have equal or different norms, with or without a mean; tokens
// arrive in several orders.
#include <algorithm>
#include <cmath>
#include <numeric>

#include <kvbench/bounds/check/subject.hpp>
#include <kvbench/bounds/check/vectors.hpp>

namespace kvbench::bounds {
namespace {

/// The order in which tokens arrive.
enum class Arrival {
  mixed,       ///< clusters in turn
  ascending,   ///< by the first coordinate of the key
  descending,  ///< the same, reversed
  in_runs,     ///< one cluster after the other
};

struct Stream {
  std::string name;
  Index n, d, dv;
  Index clusters;         ///< of keys; 0: keys without structure
  double spread;          ///< distance of a key from its centre
  double key_norm;        ///< of the centres; without clusters, of the keys
  double query_norm;      ///< logits have the scale 1/sqrt(d)
  double value_spread;    ///< standard deviation of ln |v|
  double value_mean = 0;  ///< length of a vector added to all values; without it, attention averages to nearly 0
  Arrival arrival = Arrival::mixed;
};

/// Normal numbers that depend on the stream and on their purpose alone.
class Normals {
 public:
  Normals(std::uint32_t stream, std::uint32_t part) : stream_(stream), part_(part) {}
  double at(Index row, Index col) const {
    return standard_normal(
        philox4x32({{static_cast<std::uint32_t>(row), static_cast<std::uint32_t>(col), part_, 0}}, {stream_, 0x7a11}));
  }
  /// A vector of random direction and length `norm`.
  std::vector<float> direction(Index row, Index d, double norm) const {
    std::vector<double> x(static_cast<std::size_t>(d));
    double square = 0;
    for (Index c = 0; c < d; ++c) square += std::pow(x[static_cast<std::size_t>(c)] = at(row, c), 2);
    std::vector<float> out;
    for (const double v : x) out.push_back(static_cast<float>(v * norm / std::sqrt(square)));
    return out;
  }

 private:
  std::uint32_t stream_, part_;
};

Index cluster_of(const Stream& s, Index i) { return i * 7919 % s.clusters; }

void append(std::vector<float>& rows, const std::vector<float>& row) {
  rows.insert(rows.end(), row.begin(), row.end());
}

/// Rows in another order.
std::vector<float> reordered(const std::vector<float>& rows, Index width, const std::vector<Index>& order) {
  std::vector<float> out;
  for (const Index i : order) out.insert(out.end(), rows.begin() + i * width, rows.begin() + (i + 1) * width);
  return out;
}

/// The tokens in the order of their arrival.
std::vector<Index> arrivals(const Stream& s, const std::vector<float>& keys) {
  std::vector<Index> order(static_cast<std::size_t>(s.n));
  std::iota(order.begin(), order.end(), Index{0});
  const auto first = [&](Index i) { return keys[static_cast<std::size_t>(i * s.d)]; };
  if (s.arrival == Arrival::ascending) std::ranges::stable_sort(order, {}, first);
  if (s.arrival == Arrival::descending) std::ranges::stable_sort(order, std::ranges::greater(), first);
  if (s.arrival == Arrival::in_runs) std::ranges::stable_sort(order, {}, [&](Index i) { return cluster_of(s, i); });
  return order;
}

Subject draw(const Stream& s, std::uint32_t number, Index queries, Backend& backend) {
  std::vector<float> keys, values, asked;
  const Normals centre(number, 0), offset(number, 1), value(number, 2), length(number, 3), query(number, 4);
  for (Index i = 0; i < s.n; ++i) {
    std::vector<float> key =
        s.clusters > 0 ? centre.direction(cluster_of(s, i), s.d, s.key_norm) : offset.direction(i, s.d, s.key_norm);
    if (s.clusters > 0) {
      const std::vector<float> away = offset.direction(i, s.d, s.spread);
      for (std::size_t c = 0; c < key.size(); ++c) key[c] += away[c];
    }
    append(keys, key);
    std::vector<float> row = value.direction(i, s.dv, std::exp(s.value_spread * length.at(i, 0)));
    row[0] += static_cast<float>(s.value_mean);
    append(values, row);
  }
  if (const std::vector<Index> order = arrivals(s, keys); s.arrival != Arrival::mixed) {
    keys = reordered(keys, s.d, order);
    values = reordered(values, s.dv, order);
  }
  for (Index i = 0; i < queries; ++i) append(asked, query.direction(i, s.d, s.query_norm));
  const auto scale = static_cast<float>(1 / std::sqrt(static_cast<double>(s.d)));
  return make_subject({.name = "synthetic:" + s.name,
                       .keys = std::move(keys),
                       .values = std::move(values),
                       .queries = std::move(asked),
                       .d = s.d,
                       .dv = s.dv,
                       .scale = scale},
                      backend);
}

}  // namespace

std::vector<SubjectSource> synthetic_subjects(Index queries) {
  static const Stream streams[] = {
      {"tight-clusters", 2048, 16, 16, 32, 0.05, 2, 2, 0},
      {"loose-clusters", 2048, 32, 32, 64, 0.5, 4, 4, 0.3, 1},
      {"short-keys", 2048, 16, 16, 0, 0, 0.5, 1, 0},
      {"uneven-values", 1024, 16, 8, 16, 0.2, 2, 2, 1},
      {"mean-values", 2048, 16, 2, 0, 0, 0.5, 0.5, 0.2, 2},
      {"sorted", 1024, 16, 8, 32, 0.2, 2, 2, 0.5, 1, Arrival::ascending},
      {"reversed", 1024, 16, 8, 32, 0.2, 2, 2, 0.5, 1, Arrival::descending},
      {"cluster-runs", 1024, 16, 8, 32, 0.2, 2, 2, 0.5, 1, Arrival::in_runs},
  };
  std::vector<SubjectSource> sources;
  for (std::uint32_t i = 0; i < std::size(streams); ++i) {
    const Stream& stream = streams[i];
    sources.push_back({"synthetic:" + stream.name,
                       [&stream, i, queries](Backend& backend) { return draw(stream, i, queries, backend); }});
  }
  return sources;
}

}  // namespace kvbench::bounds
