// SPDX-License-Identifier: Apache-2.0
#include <kvbench/faithful/oracle/balancekv.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include <kvbench/bounds/check/vectors.hpp>

namespace kvbench::faithful {
namespace {

constexpr std::uint32_t numbers_per_instance = 64;

struct PaperWeights {
  double num = 0, den = 0;
};
using WeightedIds = std::map<Index, PaperWeights>;

void add_snapshot(OracleRun& run, Index tokens, const WeightedIds& weights, bool close) {
  bounds::Snapshot snapshot{.tokens = tokens};
  for (const auto& [token, weight] : weights) {
    snapshot.held.push_back({.id = static_cast<TokenId>(token), .num = weight.num, .den = weight.den});
  }
  run.times.push_back(std::move(snapshot));
  if (!close) run.decided = std::ssize(run.times);
}

WalkVectors vectors_of(const bounds::Subject& subject) {
  return {.d = subject.d(),
          .dv = subject.dv(),
          .scale = double{subject.head.scale},
          .keys = subject.keys,
          .values = subject.values};
}

/// Section 4 over the context; `weights` of the tokens that are left.
class PaperBatch {
 public:
  PaperBatch(BalanceCalls& calls, const BalanceSetup& setup) : calls_(calls), setup_(setup) {}

  WeightedIds run(Index tokens, Index rounds) {
    WeightedIds left;
    std::vector<Index> list(static_cast<std::size_t>(tokens));
    std::iota(list.begin(), list.end(), Index{0});
    const double factor = calls_.rules().batch.weight;
    double weight = 1;
    for (Index round = 0; round < rounds; ++round, weight *= factor) {
      if (setup_.pairs && list.size() % 2 != 0) {  // the last token has no partner, and keeps its weight
        left[list.back()] = {weight, weight};
        list.pop_back();
      }
      list = halve(list, calls_.rules().batch.new_draws ? static_cast<std::uint32_t>(round) : 0);
    }
    for (const Index token : list) left[token] = {weight, weight};
    return left;
  }

 private:
  std::vector<Index> halve(const std::vector<Index>& list, std::uint32_t round) {
    std::vector<Index> kept;
    std::optional<WalkRadii> first;
    SignedTokens last;
    for (std::size_t begin = 0; begin < list.size(); begin += static_cast<std::size_t>(setup_.block)) {
      const std::size_t end = std::min(list.size(), begin + static_cast<std::size_t>(setup_.block));
      const std::vector<Index> block(list.begin() + static_cast<std::ptrdiff_t>(begin),
                                     list.begin() + static_cast<std::ptrdiff_t>(end));
      const WalkRadii own = radii_of(calls_.vectors(false), block);
      if (!first) first = own;
      const auto signs = calls_.sign(block, calls_.rules().batch.own_radii ? own : *first, false, round, last);
      for (const std::size_t place : kept_class(signs, calls_.rules().walk)) kept.push_back(block[place]);
    }
    return kept;
  }

  BalanceCalls& calls_;
  const BalanceSetup& setup_;
};

std::optional<OracleRun> batch_run(const bounds::StreamPlan& plan, const BalanceSetup& setup, BalanceCalls& calls) {
  const auto rounds = rounds_of_budget(plan.prompt, plan.budget, setup);
  if (!rounds) return std::nullopt;
  WeightedIds weights = PaperBatch(calls, setup).run(plan.prompt - rounds->recent, rounds->rounds);
  for (Index i = plan.prompt - rounds->recent; i < plan.prompt; ++i) weights[i] = {1, 1};
  OracleRun run;
  add_snapshot(run, plan.prompt, weights, calls.close);
  for (Index i = plan.prompt; i < plan.prompt + plan.appended; ++i) {
    if (calls.rules().batch.keeps_decoded) weights[i] = {1, 1};
    add_snapshot(run, i + 1, weights, calls.close);
  }
  return run;
}

/// Algorithm 1.
class PaperStream {
 public:
  PaperStream(const bounds::Subject& subject, const bounds::StreamPlan& plan, const PaperTreeSize& size, double eps,
              BalanceCalls& calls)
      : subject_(subject),
        size_(size),
        eps_(eps),
        calls_(calls),
        rules_(calls.rules().stream),
        denominator_(shape(0, 0)) {
    // n and r of line 9 are those of the context, or of a stream whose length is known; longer streams raise them.
    n_ = plan.prompt > 0 ? plan.prompt : plan.appended;
    for (Index i = 0; i < n_; ++i) key2_ = std::max(key2_, key2(i));
  }

  void take(Index token) {
    n_ = std::max(n_, token + 1);
    key2_ = std::max(key2_, key2(token));
    const double square = bounds::squared_norm(subject_.value(token)), norm = std::sqrt(square);
    if (norm > 0) {  // lines 4 and 5; a zero value adds nothing
      calls_.close |= near_a_power(square);
      numerator(rules_.bucket(norm)).take(token, calls_);
    }
    largest_ = std::max(largest_, norm);  // lines 6 to 8
    erase_buckets(norm);
    if (rules_.own_denominator) denominator_.take(token, calls_);  // line 14
  }

  /// Lines 10 to 16.
  WeightedIds weights() const {
    WeightedIds all;
    for (const auto& [bucket, tree] : numerators_) add(all, tree, true, !rules_.own_denominator);
    add(all, denominator_, false, true);
    return all;
  }

 private:
  PaperTree::Shape shape(double value_radius, std::uint32_t instance) const {
    return {size_.t, size_.levels, value_radius, rules_.own_draws ? numbers_per_instance * instance : 0};
  }
  double key2(Index token) const { return double{subject_.head.scale} * bounds::squared_norm(subject_.key(token)); }

  /// Whether fp64 could place the norm on either side of a power of two.
  static bool near_a_power(double square) {
    const double power = std::pow(4.0, std::round(std::log2(square) / 2));
    return square != power && std::abs(square / power - 1) < 1e-13;
  }

  PaperTree& numerator(int bucket) {
    const auto known = numerators_.find(bucket);
    if (known != numerators_.end()) return known->second;
    return numerators_.try_emplace(bucket, shape(std::ldexp(rules_.value_radius, bucket), ++opened_)).first->second;
  }

  /// Line 9.
  void erase_buckets(double norm) {
    const double n = rules_.cut_per_token ? static_cast<double>(n_) : 1;
    const double value = rules_.cut_by_largest_value ? largest_ : norm;
    const double cut = eps_ / (2 * n) * (rules_.cut_by_key_norm ? std::exp(-key2_) : 1) * value;
    for (const auto& [bucket, tree] : numerators_) calls_.close |= std::abs(std::ldexp(1.0, bucket) / cut - 1) < 1e-9;
    std::erase_if(numerators_, [&](const auto& entry) { return std::ldexp(1.0, entry.first) <= cut; });
  }

  void add(WeightedIds& all, const PaperTree& tree, bool num, bool den) const {
    for (std::size_t l = 0; l < tree.levels().size(); ++l) {
      for (const Index token : tree.levels()[l]) {
        if (num) all[token].num = PaperTree::weight(l, rules_);
        if (den) all[token].den = PaperTree::weight(l, rules_);
      }
    }
  }

  const bounds::Subject& subject_;
  PaperTreeSize size_;
  double eps_;
  BalanceCalls& calls_;
  const StreamRules& rules_;
  Index n_ = 0;
  double key2_ = 0, largest_ = 0;
  PaperTree denominator_;
  std::map<int, PaperTree> numerators_;
  std::uint32_t opened_ = 0;
};

std::optional<OracleRun> stream_run(const bounds::Subject& subject, const bounds::StreamPlan& plan,
                                    const BalanceSetup& setup, BalanceCalls& calls) {
  const auto size = tree_of_budget(subject, plan, setup);
  if (!size) return std::nullopt;
  PaperStream stream(subject, plan, *size, setup.eps, calls);
  for (Index i = 0; i < plan.prompt; ++i) stream.take(i);
  OracleRun run;
  add_snapshot(run, plan.prompt, stream.weights(), calls.close);
  for (Index i = plan.prompt; i < plan.prompt + plan.appended; ++i) {
    if (calls.rules().stream.takes_decoded) stream.take(i);
    add_snapshot(run, i + 1, stream.weights(), calls.close);
  }
  return run;
}

}  // namespace

std::vector<int> BalanceCalls::sign(const std::vector<Index>& tokens, const WalkRadii& radii, bool ones,
                                    std::uint32_t draw, SignedTokens& last) {
  WalkCall call{.tokens = tokens, .radii = radii, .last = &last};
  for (const Index token : tokens) call.uniforms.push_back(draws_.uniform(token, draw));
  const WalkOutcome outcome = walk_of_paper(vectors(ones), call, setup_, rules_.walk);
  close |= outcome.close;
  fails += outcome.fails;
  steps += outcome.steps;
  last = {tokens, outcome.signs};
  return outcome.signs;
}

double PaperTree::weight(std::size_t level, const StreamRules& rules) {
  return rules.doubles_weights ? std::pow(2.0, level) : static_cast<double>(level + 1);
}

void PaperTree::take(Index token, BalanceCalls& calls) {
  levels_[0].push_back(token);                 // line 5
  if (++taken_ % shape_.t != 0) return;        // line 6
  Index p = taken_ / shape_.t;                 // line 10
  for (Index i = 0; i < shape_.levels; ++i) {  // line 11
    if (i > 0 && !calls.rules().stream.merges_levels) return;
    reduce(static_cast<std::size_t>(i), calls);
    if (p % 2 != 0) return;
    p /= 2;  // line 15
  }
}

void PaperTree::reduce(std::size_t level, BalanceCalls& calls) {
  const std::vector<Index> list = levels_[level];
  const bool ones = shape_.value_radius == 0;
  WalkRadii radii = radii_of(calls.vectors(ones), list);
  if (!ones) radii.value2 = std::pow(shape_.value_radius, 2);
  const auto signs = calls.sign(list, radii, ones, shape_.first_draw + static_cast<std::uint32_t>(level), last_);
  for (const std::size_t place : kept_class(signs, calls.rules().walk))
    levels_[level + 1].push_back(list[place]);                                                            // line 12
  levels_[level].resize(calls.rules().stream.clears_levels ? 0 : std::min<std::size_t>(1, list.size()));  // line 13
}

std::optional<OracleRun> balance_oracle(const bounds::Subject& subject, const bounds::StreamPlan& plan,
                                        const BalanceSetup& setup, const BalanceRules& rules) {
  BalanceCalls calls(vectors_of(subject), methods::Draws(plan.seed, "balancekv", subject.head), setup, rules);
  return setup.stream ? stream_run(subject, plan, setup, calls) : batch_run(plan, setup, calls);
}

}  // namespace kvbench::faithful
