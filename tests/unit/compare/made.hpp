// SPDX-License-Identifier: Apache-2.0
// Results that functions compute.
#pragma once

#include <functional>
#include <limits>

#include <kvbench/compare/query_results.hpp>

namespace kvbench::testing {

inline constexpr float none = std::numeric_limits<float>::quiet_NaN();
using Value = std::function<float(std::size_t query, std::uint32_t seed)>;

/// Results of 128 queries (8 blocks) on one layer with two query heads, computed by functions.
class Made : public compare::QueryResults {
 public:
  explicit Made(std::string path, std::size_t queries = 128, std::int64_t layer = 4, const std::string& run = "")
      : path_(std::move(path)) {
    for (Index head = 0; head < 2; ++head) {
      compare::QueryPlace place{.run = run,
                                .trace = "t.h5",
                                .sha256 = "abc",
                                .prompt = "0",
                                .layer = layer,
                                .query_head = head,
                                .context_tokens = 4096};
      for (std::size_t q = 0; q < queries; ++q) place.positions.push_back(static_cast<std::int32_t>(100 + q));
      places_.push_back(place);
    }
  }
  Made& with(const std::string& method, Value value, std::vector<std::uint32_t> seeds = {},
             const std::string& params = "", const std::string& budget = "25%") {
    const bool seeded = !seeds.empty();
    if (!seeded) seeds = {0};
    for (const std::uint32_t seed : seeds) {
      configurations_.push_back({method, params, Budget::parse(budget), seed, seeded});
      values_.push_back(value);
    }
    return *this;
  }
  Made& holding(double bytes) {  // the configurations so far
    bytes_.resize(values_.size(), bytes);
    return *this;
  }
  Made& failing(const std::string& method, replay::Status status) {
    bad_.emplace_back(configurations_.size(), status);
    return with(method, [](auto, auto) { return 0.0f; });
  }
  Made& of_layers(std::int64_t count) {
    for (compare::QueryPlace& place : places_) place.model_layers = count;
    return *this;
  }
  /// Every layer was kept exact.
  Made& dense() {
    dense_ = true;
    return *this;
  }
  const std::string& path() const override { return path_; }
  const std::vector<compare::QueryPlace>& places() const override { return places_; }
  const std::vector<compare::QueryConfiguration>& configurations() const override { return configurations_; }
  std::optional<compare::QueryValues> read(std::size_t place, std::size_t c) const override {
    compare::QueryValues out{.dense = dense_};
    if (c < bytes_.size()) out.bytes_held = bytes_[c], out.bytes_read = 100;
    for (const auto& [index, status] : bad_) {
      if (index == c) return compare::QueryValues{.status = status, .reason = "it cannot"};
    }
    for (std::size_t q = 0; q < places_[place].positions.size(); ++q) {
      out.values.push_back(values_[c](q, configurations_[c].seed));
    }
    return out;
  }

 private:
  std::string path_;
  bool dense_ = false;
  std::vector<compare::QueryPlace> places_;
  std::vector<compare::QueryConfiguration> configurations_;
  std::vector<Value> values_;
  std::vector<double> bytes_;
  std::vector<std::pair<std::size_t, replay::Status>> bad_;
};

inline Value constant(float value) {
  return [value](auto, auto) { return value; };
}

}  // namespace kvbench::testing
