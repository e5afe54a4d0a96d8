// SPDX-License-Identifier: Apache-2.0
#include <kvbench/trace/patterns.hpp>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>
#include <numeric>

#include <kvbench/kernels/normal.hpp>

namespace kvbench::trace {
class SynthHead::Generator {
  enum class Stream : std::uint32_t {
    keys,
    values,
    queries,
    value_mean,
    value_norm,
    centre,
    membership,
    query_membership,
    direction,
    hitters,
    speculation,
    probes,
    sketch
  };

  /// Counter-based random numbers: each (stream, head, row, column) has its number, in any order of evaluation.
  class Draws {
   public:
    Draws(std::uint32_t seed, Place place) : key_{seed, 0x73796e74U /* "synt" */}, place_(place) {}

    double uniform(Stream stream, std::uint32_t head, std::int64_t row) const {
      const PhiloxBlock block = draw(stream, head, row, 0);
      return uniform52(block.x[0], block.x[1]);
    }
    /// Adds N(0, sigma^2) to out[c], two numbers per block.
    void add_normals(Stream stream, std::uint32_t head, std::int64_t row, double sigma,
                     std::vector<double>& out) const {
      for (std::size_t c = 0; c < out.size(); c += 2) {
        const auto two = normal_pair(draw(stream, head, row, static_cast<std::uint32_t>(c / 2)), sigma);
        out[c] += two[0];
        if (c + 1 < out.size()) out[c + 1] += two[1];
      }
    }

   private:
    PhiloxBlock draw(Stream stream, std::uint32_t head, std::int64_t row, std::uint32_t column) const {
      const PhiloxBlock counter{{place_.layer << 16 | head, place_.prompt, static_cast<std::uint32_t>(row),
                                 static_cast<std::uint32_t>(stream) << 24 | column}};
      return philox4x32(counter, key_);
    }
    PhiloxKey key_;
    Place place_;
  };

 public:
  Generator(const SynthOptions& options, Place place)
      : options_(options), draws_(options.seed, place), place_(place), sigma_(options.key_norm / std::sqrt(dim())) {
    direction_.resize(static_cast<std::size_t>(options.head_dim));
    draws_.add_normals(Stream::direction, place.kv_head, 0, 1, direction_);
    const double norm = std::sqrt(std::inner_product(direction_.begin(), direction_.end(), direction_.begin(), 0.0));
    for (double& x : direction_) x /= norm;
    if (options.pattern == Pattern::sinks) marked(0, std::min<std::int64_t>(4, options.num_tokens));
    if (options.pattern == Pattern::needle) marked(options.prompt_tokens / 2, options.prompt_tokens / 2 + 1);
    if (options.pattern == Pattern::heavy_hitters) mark_hitters();
  }

  std::vector<float> keys(Rows range) const {
    return rows(range, options_.head_dim, [&](std::int64_t i, std::vector<double>& key) {
      if (std::binary_search(marked_.begin(), marked_.end(), i)) {
        for (std::size_t c = 0; c < key.size(); ++c) key[c] = mark_length() * direction_[c];
      } else {
        scatter(Stream::keys, Stream::membership, place_.kv_head, i, key);
      }
      if (place_.layer == 0) key.back() += options_.key_bias;
    });
  }

  std::vector<float> queries(std::uint32_t head, Rows range) const {
    return rows(range, options_.head_dim, [&](std::int64_t i, std::vector<double>& query) {
      scatter(Stream::queries, Stream::query_membership, head, i, query);
      if (!looks_for_marks(i)) return;
      for (std::size_t c = 0; c < query.size(); ++c) query[c] += pull() * direction_[c];
    });
  }

  std::vector<float> guesses(std::uint32_t head, Rows range, const std::vector<float>& queries, double error) const {
    return rows(range, options_.head_dim, [&](std::int64_t i, std::vector<double>& guess) {
      draws_.add_normals(Stream::speculation, head, i, error * sigma_, guess);
      const float* query = &queries[static_cast<std::size_t>((i - range.begin) * options_.head_dim)];
      for (std::size_t c = 0; c < guess.size(); ++c) guess[c] += query[c];
    });
  }

  std::vector<float> probes(std::uint32_t head, Rows range) const {
    return rows(range, options_.value_dim,
                [&](std::int64_t i, std::vector<double>& row) { draws_.add_normals(Stream::probes, head, i, 1, row); });
  }

  std::vector<float> sketch(std::uint32_t head, std::int64_t columns) const {
    return rows({0, options_.value_dim}, columns, [&](std::int64_t i, std::vector<double>& row) {
      draws_.add_normals(Stream::sketch, head, i, 1 / std::sqrt(static_cast<double>(columns)), row);
    });
  }

  std::vector<float> values(Rows range) const {
    std::vector<double> mean(static_cast<std::size_t>(options_.value_dim));
    draws_.add_normals(Stream::value_mean, place_.kv_head, 0, 0.5, mean);
    std::vector<double> spread(1);
    return rows(range, options_.value_dim, [&](std::int64_t i, std::vector<double>& value) {
      spread[0] = 0;
      draws_.add_normals(Stream::value_norm, place_.kv_head, i, 0.3, spread);
      // In trained models, sinks have small values.
      const bool sink = options_.pattern == Pattern::sinks && i < 4;
      value = mean;
      draws_.add_normals(Stream::values, place_.kv_head, i, 1, value);
      const double norm = std::exp(spread[0]) * (sink ? 0.1 : 1);
      for (double& x : value) x *= norm;
    });
  }

 private:
  double dim() const { return static_cast<double>(options_.head_dim); }
  void marked(std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) marked_.push_back(i);
  }

  void mark_hitters() {
    const std::int64_t wanted = std::max<std::int64_t>(1, options_.num_tokens / 64);
    std::vector<std::pair<double, std::int64_t>> order;
    for (std::int64_t i = 0; i < options_.num_tokens; ++i) {
      order.emplace_back(draws_.uniform(Stream::hitters, place_.kv_head, i), i);
    }
    std::partial_sort(order.begin(), order.begin() + wanted, order.end());
    for (std::int64_t i = 0; i < wanted; ++i) marked_.push_back(order[static_cast<std::size_t>(i)].second);
    std::sort(marked_.begin(), marked_.end());
  }

  bool looks_for_marks(std::int64_t i) const {
    if (options_.pattern == Pattern::needle)
      return i >= options_.num_tokens - std::max<std::int64_t>(1, options_.num_queries / 8);
    return !marked_.empty();
  }

  /// Component of queries in the direction of the marked keys.
  double pull() const { return options_.key_norm / 2; }

  /// Length of the marked keys for which they get four fifths of the attention together: their logit must exceed the
  /// logarithm of the sum over the other keys, log n + var / 2 for Gaussian logits, by log(4 / marks).
  double mark_length() const {
    const double deviation = options_.key_norm * options_.key_norm / dim();
    const double background = std::log(static_cast<double>(options_.num_tokens)) + deviation * deviation * 0.5 * 1.25;
    const double logit = background + std::log(4.0 / static_cast<double>(marked_.size()));
    return std::max(logit, 1.0) * std::sqrt(dim()) / pull();
  }

  void scatter(Stream stream, Stream membership, std::uint32_t head, std::int64_t i, std::vector<double>& out) const {
    if (options_.pattern != Pattern::clusters) return draws_.add_normals(stream, head, i, sigma_, out);
    const auto centre =
        static_cast<std::int64_t>(draws_.uniform(membership, head, i) * static_cast<double>(options_.clusters));
    draws_.add_normals(Stream::centre, place_.kv_head, centre, sigma_, out);
    draws_.add_normals(stream, head, i, options_.spread * std::numbers::sqrt2 * sigma_,
                       out);  // centres are sqrt(2) |k| apart
  }

  std::vector<float> rows(Rows range, std::int64_t dim,
                          const std::function<void(std::int64_t, std::vector<double>&)>& fill) const {
    std::vector<float> all;
    all.reserve(static_cast<std::size_t>((range.end - range.begin) * dim));
    std::vector<double> row(static_cast<std::size_t>(dim));
    for (std::int64_t i = range.begin; i < range.end; ++i) {
      std::ranges::fill(row, 0.0);
      fill(i, row);
      for (const double x : row) all.push_back(static_cast<float>(x));
    }
    return all;
  }

  const SynthOptions& options_;
  Draws draws_;
  Place place_;
  double sigma_;
  std::vector<double> direction_;     ///< unit vector of the marked keys; queries have a component in this direction
  std::vector<std::int64_t> marked_;  ///< ascending
};

SynthHead::SynthHead(const SynthOptions& options, Place place)
    : generator_(std::make_unique<const Generator>(options, place)) {}
SynthHead::~SynthHead() = default;

std::vector<float> SynthHead::keys(Rows rows) const { return generator_->keys(rows); }
std::vector<float> SynthHead::values(Rows rows) const { return generator_->values(rows); }
std::vector<float> SynthHead::queries(std::int64_t head, Rows rows) const {
  return generator_->queries(static_cast<std::uint32_t>(head), rows);
}
std::vector<float> SynthHead::guesses(std::int64_t head, Rows rows, const std::vector<float>& queries,
                                      double error) const {
  return generator_->guesses(static_cast<std::uint32_t>(head), rows, queries, error);
}
std::vector<float> SynthHead::probes(std::int64_t head, Rows rows) const {
  return generator_->probes(static_cast<std::uint32_t>(head), rows);
}
std::vector<float> SynthHead::sketch(std::int64_t head, std::int64_t columns) const {
  return generator_->sketch(static_cast<std::uint32_t>(head), columns);
}

}  // namespace kvbench::trace
