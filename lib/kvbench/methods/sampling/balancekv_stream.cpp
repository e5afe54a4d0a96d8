// SPDX-License-Identifier: Apache-2.0
#include <kvbench/methods/sampling/balancekv_stream.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include <kvbench/methods/sampling/merge_and_reduce.hpp>
#include <kvbench/methods/stages/draws.hpp>
#include <kvbench/methods/stages/token_numbers.hpp>

namespace kvbench::methods {
namespace {

/// Draw numbers reserved per instance of MergeAndReduce: D begins at 0, the instances of N follow in the order in which
/// they open.
constexpr std::uint32_t draws_per_instance = 64;

struct TokenNorms {
  double key = 0, value = 0;
};
std::vector<TokenNorms> norms_of(const Buffer<const float>& keys, const Buffer<const float>& values, Backend& backend) {
  const TokenNumbers of_keys = norms(keys, backend), of_values = norms(values, backend);
  std::vector<TokenNorms> all;
  for (std::size_t i = 0; i < of_keys.size(); ++i) all.push_back({of_keys[i], of_values[i]});
  return all;
}

/// Length and largest key norm that the cut assumes.
struct Horizon {
  Index tokens = 0;
  double key_norm = 0;
};

/// What decides which tokens reduce an instance or drop one.
struct StreamCounts {
  Horizon horizon;  ///< n and r of the cut
  Index tokens = 0;
  double largest_value = 0;
  std::map<int, Index> buckets = {};  ///< tokens by instance of N
};

class StreamCache : public HeadCache {
 public:
  StreamCache(const HeadPrompt& head, const BalancekvParams& params, const TreePlan& plan, const Horizon& horizon,
              std::uint32_t seed, Backend& backend)
      : HeadCache(head, backend),
        draws_(seed, "balancekv", head),
        params_(params),
        plan_(plan),
        walk_(walk_settings(params, head.scale)),
        counts_{.horizon = horizon},
        denominator_({.t = plan.t, .levels = plan.levels, .walk = walk_}, d_, dv_, backend) {
    const std::vector<TokenNorms> norms = norms_of(head.keys, head.values, backend);
    for (Index i = 0; i < head.tokens(); ++i) take(i, norms[static_cast<std::size_t>(i)], head.keys, head.values);
    flush(head.keys, head.values);
  }

  Index takes(const TokenBlock& tokens) override {
    offered_ = norms_of(tokens.keys, tokens.values, backend_);
    StreamCounts counts = counts_;
    Index taken = 0;
    for (bool changed = false; taken < tokens.size() && !changed; ++taken) {
      const TokenNorms& norm = offered_[static_cast<std::size_t>(taken)];
      changed = changes_state(counts, norm.value);
      if (changed && taken > 0) break;
      count(counts, norm);
    }
    return taken;
  }
  void append(const TokenBlock& tokens) override {
    for (Index i = 0; i < tokens.size(); ++i)
      take(i, offered_.at(static_cast<std::size_t>(i)), tokens.keys, tokens.values);
    flush(tokens.keys, tokens.values);
  }

  EntryTables entries(const QueryBlock&) const override {
    const std::map<TokenId, Weights> merged = weights();
    if (merged.empty()) return {};
    std::vector<TokenId> ids;
    std::vector<float> num, den;
    for (const auto& [id, weight] : merged) {
      ids.push_back(id);
      num.push_back(weight.num);
      den.push_back(weight.den);
    }
    const Index width = std::ssize(ids);
    return {{.ids = backend_.adopt(std::move(ids), 1, width),
             .weight_num = backend_.adopt(std::move(num), 1, width),
             .weight_den = backend_.adopt(std::move(den), 1, width)}};
  }

  /// A token of both sets is stored once, with one level per set.
  Footprint footprint() const override {
    const Index tokens = std::ssize(weights());
    Index valued = 0;
    for (const auto& [bucket, instance] : numerators_) valued += instance.held();
    return {{.name = "keys of N and D", .rows = tokens, .cols = d_},
            {.name = "values of N", .rows = valued, .cols = dv_, .content = Content::values},
            {.name = "levels in N and D",
             .element = Element::u8,
             .rows = plan_.levels > 0 ? tokens : 0,
             .cols = 2,
             .content = Content::meta}};
  }

  std::vector<Note> notes() const override {
    Index fails = fails_ + denominator_.fails(), steps = steps_ + denominator_.steps();
    for (const auto& [bucket, instance] : numerators_) {
      fails += instance.fails();
      steps += instance.steps();
    }
    std::vector<Note> all = walk_notes(fails, steps);
    all.push_back({"value-norm buckets of all heads and seeds", static_cast<double>(numerators_.size())});
    return all;
  }

 private:
  struct Weights {
    float num = 0, den = 0;
  };

  std::map<TokenId, Weights> weights() const {
    std::map<TokenId, Weights> merged;
    const auto add = [&](const MergeAndReduce& instance, float Weights::*sum) {
      const auto levels = instance.tokens();
      for (std::size_t l = 0; l < levels.size(); ++l) {
        for (const TokenId id : levels[l]) merged[id].*sum = std::ldexp(1.0f, static_cast<int>(l));
      }
    };
    add(denominator_, &Weights::den);
    for (const auto& [bucket, instance] : numerators_) add(instance, &Weights::num);
    return merged;
  }

  /// Buckets with 2^i <= cut are dropped.
  double cut(const Horizon& horizon, double largest_value) const {
    const double r = horizon.key_norm, n = static_cast<double>(horizon.tokens);
    return params_.eps / (2 * n) * std::exp(-double{walk_.scale} * r * r) * largest_value;
  }

  /// Whether a largest value norm so far drops the lowest bucket.
  bool drops_bucket(const StreamCounts& counts, double largest_value) const {
    return !counts.buckets.empty() &&
           std::ldexp(1.0, counts.buckets.begin()->first) <= cut(counts.horizon, largest_value);
  }

  /// Whether the next token reduces a level of an instance of so many.
  bool reduces(Index tokens) const { return plan_.levels > 0 && (tokens + 1) % plan_.t == 0; }

  /// Whether the next token does more than join level 0 of its instances.
  bool changes_state(const StreamCounts& counts, double value_norm) const {
    if (reduces(counts.tokens) || drops_bucket(counts, std::max(counts.largest_value, value_norm))) return true;
    if (value_norm == 0) return false;
    const auto bucket = counts.buckets.find(norm_bucket(value_norm));
    return bucket == counts.buckets.end() ? false : reduces(bucket->second);
  }

  void count(StreamCounts& counts, const TokenNorms& norm) const {
    ++counts.tokens;
    counts.horizon.tokens = std::max(counts.horizon.tokens, counts.tokens);
    counts.horizon.key_norm = std::max(counts.horizon.key_norm, norm.key);
    if (norm.value > 0) ++counts.buckets[norm_bucket(norm.value)];
    counts.largest_value = std::max(counts.largest_value, norm.value);
    while (drops_bucket(counts, counts.largest_value)) counts.buckets.erase(counts.buckets.begin());
  }

  void take(Index row, const TokenNorms& norm, const Buffer<const float>& keys, const Buffer<const float>& values) {
    const auto token = static_cast<TokenId>(counts_.tokens);
    const auto local = static_cast<std::int32_t>(row);
    count(counts_, norm);
    if (norm.value > 0) numerator(norm_bucket(norm.value)).take(token, local, keys, values, draws_);
    while (!numerators_.empty() && !counts_.buckets.contains(numerators_.begin()->first)) {
      fails_ += numerators_.begin()->second.fails();
      steps_ += numerators_.begin()->second.steps();
      numerators_.erase(numerators_.begin());
    }
    denominator_.take(token, local, keys, values, draws_);
  }

  MergeAndReduce& numerator(int bucket) {
    const auto known = numerators_.find(bucket);
    if (known != numerators_.end()) return known->second;
    ++opened_;
    const MergeAndReduce::Settings settings{.t = plan_.t,
                                            .levels = plan_.levels,
                                            .walk = walk_,
                                            .value_radius = std::ldexp(1.0, bucket),
                                            .first_draw = draws_per_instance * opened_};
    return numerators_.try_emplace(bucket, settings, d_, dv_, backend_).first->second;
  }

  void flush(const Buffer<const float>& keys, const Buffer<const float>& values) {
    denominator_.flush(keys, values);
    for (auto& [bucket, instance] : numerators_) instance.flush(keys, values);
  }

  Draws draws_;
  BalancekvParams params_;
  TreePlan plan_;
  WalkSettings walk_;
  StreamCounts counts_;
  std::vector<TokenNorms> offered_;  ///< of the tokens that takes() was asked about
  MergeAndReduce denominator_;
  std::map<int, MergeAndReduce> numerators_;  ///< by bucket
  std::uint32_t opened_ = 0;                  ///< instances of N so far
  Index fails_ = 0, steps_ = 0;               ///< of instances that were dropped
};

/// Upper bound of the numbers that the plan stores.
Index numbers_held(const StreamSizes& sizes, const TreePlan& plan, Index d, Index dv) {
  if (plan.levels == 0) return sizes.tokens * (d + dv);  // N and D are the same tokens
  const auto held = sizes.seen ? held_after : held_up_to;
  Index numbers = held(sizes.tokens, plan.t, plan.levels) * d;
  for (const Index bucket : sizes.buckets) numbers += held(bucket, plan.t, plan.levels) * (d + dv);
  return numbers;
}

/// The smallest T that fits for this t, otherwise the largest that has an effect.
TreePlan smallest_tree(const StreamSizes& sizes, Index t, Index budget, Index d, Index dv) {
  Index levels = 0;
  while (t << levels < sizes.tokens && numbers_held(sizes, {t, levels}, d, dv) > budget * (d + dv)) ++levels;
  return {t, levels};
}

/// log2(tokens / t), rounded up.
Index whole_tree(Index tokens, Index t) {
  Index levels = 0;
  while (t << levels < tokens) ++levels;
  return levels;
}

/// The assumptions from which a stream is planned.
struct StreamOutlook {
  Horizon horizon;
  StreamSizes sizes;
};
StreamOutlook outlook_of(const HeadPrompt& head, const BalancekvParams& params, Backend& backend) {
  const bool seen = head.tokens() > 0 || !head.calibration_keys.present();
  const Buffer<const float> keys = seen ? head.keys : head.calibration_keys;
  StreamOutlook outlook{.sizes = {.tokens = keys.rows(), .seen = seen}};
  outlook.horizon.tokens = keys.rows();
  for (const double norm : norms(keys, backend)) outlook.horizon.key_norm = std::max(outlook.horizon.key_norm, norm);
  if (!seen) {
    outlook.sizes.buckets.assign(static_cast<std::size_t>(params.buckets),
                                 (keys.rows() + params.buckets - 1) / params.buckets);
    return outlook;
  }
  std::map<int, Index> counts;
  for (const double norm : norms(head.values, backend)) {
    if (norm > 0) ++counts[norm_bucket(norm)];
  }
  for (const auto& [bucket, count] : counts) outlook.sizes.buckets.push_back(count);
  return outlook;
}

}  // namespace

int norm_bucket(double norm) {
  int exponent = 0;
  return std::frexp(norm, &exponent) == 0.5 ? exponent - 1 : exponent;
}

TreePlan plan_stream(const StreamSizes& sizes, const BalancekvParams& params, Index budget, Index d, Index dv) {
  const bool any_t = params.t == 0;
  Index least = std::numeric_limits<Index>::max();  // numbers
  for (Index t = any_t ? std::max<Index>(2, sizes.tokens + sizes.tokens % 2) : params.t; t >= 2; t -= 2) {
    TreePlan plan{t, params.rounds};
    if (params.rounds < 0)
      plan = any_t ? TreePlan{t, whole_tree(sizes.tokens, t)} : smallest_tree(sizes, t, budget, d, dv);
    const Index numbers = numbers_held(sizes, plan, d, dv);
    if (numbers <= budget * (d + dv)) return plan;
    least = std::min(least, numbers);
    if (!any_t) break;
  }
  throw Infeasible(fmt::format(
      "balancekv mode=stream needs the memory of {} tokens for its sets N and D{}, more than the budget of {}; give a "
      "larger budget{}",
      (least + d + dv - 1) / (d + dv), any_t ? fmt::format(", in {} norm buckets,", std::ssize(sizes.buckets)) : "",
      budget, any_t ? "" : ", or do not set balancekv.t"));
}

MakeCache prepare_balancekv_stream(const HeadPrompt& head, const BalancekvParams& params, Backend& backend) {
  return [head, params, outlook = outlook_of(head, params, backend), &backend](Index budget, std::uint32_t seed) {
    const TreePlan plan = plan_stream(outlook.sizes, params, budget, head.keys.cols(), head.value_numbers());
    return std::make_unique<StreamCache>(head, params, plan, outlook.horizon, seed, backend);
  };
}

}  // namespace kvbench::methods
