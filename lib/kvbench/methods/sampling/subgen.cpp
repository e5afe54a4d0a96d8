// SPDX-License-Identifier: Apache-2.0
#include <kvbench/methods/sampling/subgen.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include <kvbench/methods/sampling/leader_partition.hpp>
#include <kvbench/methods/sampling/reservoir.hpp>
#include <kvbench/methods/stages/draws.hpp>
#include <kvbench/methods/stages/per_block.hpp>
#include <kvbench/methods/stages/rows.hpp>

namespace kvbench::methods {
namespace {

/// Draw numbers of a token: those of value slots begin at 0, those of the samples of its cluster here.
constexpr std::uint32_t cluster_draws = 0x80000000u;

/// The representatives of a partition in one buffer, extended as decoded keys arrive.
class Representatives {
 public:
  Representatives(Backend& backend, const HeadPrompt& head, std::shared_ptr<const LeaderPartition> context)
      : backend_(backend), keys_(head.keys), context_(std::move(context)), clusters_(context_->clusters()) {}

  /// The cluster that this key [1, d] joins or opens.
  Index assign(const Buffer<const float>& key) {
    if (clusters_ >= rows_.rows()) grow(key.cols());
    backend_.fill(count_, static_cast<std::int32_t>(clusters_));
    backend_.run(kernels::LeaderClusters<Buffer>{.points = key,
                                                 .radius = context_->radius,
                                                 .representatives = rows_.slice(0, clusters_ + 1),
                                                 .count = count_,
                                                 .labels = label_});
    const Index cluster = backend_.read(label_)[0];
    clusters_ = std::max(clusters_, cluster + 1);
    return cluster;
  }

 private:
  void grow(Index d) {
    const bool first = !rows_.present();
    auto wider = backend_.allocate<float>(2 * clusters_ + 16, d);
    if (clusters_ > 0) {
      backend_.run(kernels::GatherRows<Buffer>{
          .source = first ? keys_ : Buffer<const float>(rows_),
          .ids = backend_.adopt(first ? context_->representatives : token_range(0, clusters_), clusters_),
          .out = wider.slice(0, clusters_)});
    }
    rows_ = wider;
    count_ = backend_.allocate<std::int32_t>(1);
    label_ = backend_.allocate<std::int32_t>(1);
  }

  Backend& backend_;
  Buffer<const float> keys_;  ///< of the context
  std::shared_ptr<const LeaderPartition> context_;
  Index clusters_;
  Buffer<float> rows_;  ///< [capacity, d]; absent until a key is appended
  Buffer<std::int32_t> count_, label_;
};

class SubgenCache : public HeadCache {
 public:
  /// norms2: [n] squared norms of the context's values.
  SubgenCache(Backend& backend, const HeadPrompt& head, std::shared_ptr<const LeaderPartition> partition,
              const std::vector<double>& norms2, Index t, Index s, std::uint32_t seed, bool hindsight)
      : HeadCache(head, backend),
        hindsight_(hindsight),
        t_(t),
        draws_(seed, "subgen", head),
        values_(s, 0),
        representatives_(backend, head, partition) {
    for (std::size_t i = 0; i < norms2.size(); ++i) take(partition->labels[i], norms2[i]);
  }

  void append(const TokenBlock& tokens) override {
    take(representatives_.assign(tokens.keys), squared_norms(tokens.values, backend_)[0]);
  }

  EntryTables entries(const QueryBlock&) const override {
    if (tokens_ == 0) return {};
    const std::vector<Entry> merged = merged_entries();
    std::vector<TokenId> ids;
    std::vector<float> num, den;
    for (const Entry& entry : merged) {
      ids.push_back(entry.id);
      num.push_back(static_cast<float>(entry.num));
      den.push_back(static_cast<float>(entry.den));
    }
    const Index width = static_cast<Index>(ids.size());
    return {{.ids = backend_.adopt(std::move(ids), 1, width),
             .weight_num = backend_.adopt(std::move(num), 1, width),
             .weight_den = backend_.adopt(std::move(den), 1, width)}};
  }

  /// The lists of Algorithm 1, with repeated samples.
  Footprint footprint() const override {
    const Index m = static_cast<Index>(clusters_.size()), s = values_.size();
    return {{.name = "slot keys", .rows = s, .cols = d_},
            {.name = "slot values", .rows = s, .cols = dv_, .content = Content::values},
            {.name = "cluster samples", .rows = m * t_, .cols = d_},
            {.name = "representatives", .rows = m, .cols = d_, .read = Read::never, .content = Content::meta},
            {.name = "cluster sizes", .element = Element::i32, .rows = m, .cols = 1, .content = Content::meta},
            {.name = "slot norms", .element = Element::f32, .rows = s, .cols = 1, .content = Content::meta},
            {.name = "mu (fp64)", .element = Element::f32, .rows = 1, .cols = 2, .content = Content::meta}};
  }

  std::vector<Note> notes() const override {
    if (!hindsight_) return {};
    return {{.text = "radius chosen with hindsight, so that it fits the budget at the end of the prompt"}};
  }

 private:
  struct Entry {
    TokenId id;
    double num, den;
  };

  void take(Index cluster, double norm2) {
    const auto token = static_cast<TokenId>(tokens_++);
    if (cluster == static_cast<Index>(clusters_.size())) clusters_.emplace_back(t_, cluster_draws);
    clusters_[static_cast<std::size_t>(cluster)].offer(draws_, token, 1);
    values_.offer(draws_, token, norm2);
  }

  /// The entries by token, with summed weights.
  std::vector<Entry> merged_entries() const {
    std::vector<Entry> all;
    const double share = values_.total() / static_cast<double>(values_.size());
    for (const Reservoir::Slot& slot : values_.held()) all.push_back({slot.token, share / slot.weight, 0});
    for (const Reservoir& cluster : clusters_) {
      const double weight = cluster.total() / static_cast<double>(t_);
      for (const Reservoir::Slot& slot : cluster.held()) all.push_back({slot.token, 0, weight});
    }
    std::ranges::sort(all, {}, &Entry::id);
    std::vector<Entry> merged;
    for (const Entry& entry : all) {
      if (merged.empty() || merged.back().id != entry.id) {
        merged.push_back(entry);
      } else {
        merged.back().num += entry.num;
        merged.back().den += entry.den;
      }
    }
    return merged;
  }

  bool hindsight_;  ///< the radius was chosen from keys of the whole prompt
  Index t_;
  Index tokens_ = 0;  ///< taken so far
  Draws draws_;
  Reservoir values_;
  std::vector<Reservoir> clusters_;
  Representatives representatives_;
};

/// Throws Infeasible, naming the smallest budget that suffices.
[[noreturn]] void reject_budget(const SubgenParams& params, Index budget, Index d, Index dv) {
  // A cluster takes as much as this many tokens, and the slots take s tokens or half of the budget.
  const Index cluster = ((1 + params.t) * d + d + dv - 1) / (d + dv);
  const Index enough = params.s > 0 ? params.s + cluster : std::max<Index>(2, 2 * cluster - 1);
  throw Infeasible(
      fmt::format("subgen keeps s = {} value slots and a representative and t = {} samples of each cluster, and a "
                  "budget of {} tokens has no room for one cluster; give at least {} tokens, smaller s or t, or a "
                  "radius (subgen.delta or subgen.delta_r)",
                  subgen_value_slots(params, budget), params.t, budget, enough));
}

/// The partitions of a context, which all seeds and all budgets of one capacity share.
class Partitions {
 public:
  Partitions(const HeadPrompt& head, const SubgenParams& params, float radius, Backend& backend)
      : head_(head), params_(params), radius_(radius), backend_(backend) {}

  /// Whether the radius is chosen from the calibration keys of a stream, so that it fits the budget at the end of its
  /// prompt.
  bool calibrated() const { return budgeted() && head_.tokens() == 0 && head_.calibration_keys.present(); }

  std::shared_ptr<const LeaderPartition> of(Index budget) {
    const Index d = head_.keys.cols(), dv = head_.value_numbers();
    const Buffer<const float>& keys = calibrated() ? head_.calibration_keys : head_.keys;
    Index capacity = std::max<Index>(1, keys.rows());
    if (budgeted()) capacity = std::min(capacity, subgen_cluster_capacity(params_, budget, d, dv));
    if (capacity == 0) reject_budget(params_, budget, d, dv);
    return computed_once(by_capacity_, capacity, [&] { return compute(keys, capacity); });
  }

 private:
  bool budgeted() const { return params_.delta == 0 && params_.delta_r == 0; }

  std::shared_ptr<const LeaderPartition> compute(const Buffer<const float>& keys, Index capacity) const {
    // The bisection for the radius takes about ten passes.
    const double pairs = 10 * static_cast<double>(keys.rows() * capacity);
    if (budgeted()) check_pairs(params_.limit, "subgen", pairs, "lower the budget, or give subgen.delta");
    auto found = budgeted() ? smallest_leader_partition(backend_, keys, capacity)
                            : leader_partition(backend_, keys, radius_, capacity).value();
    // Only the radius may depend on future tokens.
    if (calibrated()) found = {.radius = found.radius};
    return std::make_shared<const LeaderPartition>(std::move(found));
  }

  HeadPrompt head_;
  SubgenParams params_;
  float radius_;  ///< used where the budget does not determine it
  Backend& backend_;
  std::map<Index, std::shared_ptr<const LeaderPartition>> by_capacity_;
};

/// delta = delta_r / r with r = scale * max |observed q|.
double radius_from_queries(const HeadPrompt& head, double delta_r, Backend& backend) {
  if (!head.observed.present() || head.observed.rows() == 0) {
    throw Unavailable(
        "subgen.delta_r is divided by the norm of the observed queries, and there are none inside the context; record "
        "a trace with observed queries, or give subgen.delta, or neither");
  }
  return delta_r / (head.scale * std::sqrt(std::ranges::max(squared_norms(head.observed, backend))));
}

MakeCache prepare(const HeadPrompt& head, const SubgenParams& params, Backend& backend) {
  const double radius = params.delta_r > 0 ? radius_from_queries(head, params.delta_r, backend) : params.delta;
  // Zero queries allow any radius.
  const double largest = std::sqrt(std::numeric_limits<float>::max());
  const auto partitions =
      std::make_shared<Partitions>(head, params, static_cast<float>(std::min(radius, largest)), backend);
  const auto norms2 = std::make_shared<const std::vector<double>>(squared_norms(head.values, backend));
  return [head, params, partitions, norms2, &backend](Index budget, std::uint32_t seed) {
    return std::make_unique<SubgenCache>(backend, head, partitions->of(budget), *norms2, params.t,
                                         subgen_value_slots(params, budget), seed, partitions->calibrated());
  };
}

}  // namespace

void fields(ParamVisitor& visitor, SubgenParams& params) {
  visitor.integer("t", params.t, {.min = 1, .max = 65536}, "samples of each cluster");
  visitor.integer("s", params.s, {.min = 0, .max = 1048576}, "value slots; 0: half of the budget");
  visitor.real("delta", params.delta, {.min = 0}, "cluster radius; 0: not given");
  visitor.real("delta_r", params.delta_r, {.min = 0}, "radius times the norm r of the observed queries; 0: not given");
  fields(visitor, params.limit);
}

void check(const SubgenParams& params) {
  if (params.delta > 0 && params.delta_r > 0) {
    throw Error(
        "subgen.delta={} and subgen.delta_r={} both set the radius; give one of them, or neither for a radius that "
        "fits the budget",
        params.delta, params.delta_r);
  }
}

Index subgen_value_slots(const SubgenParams& params, Index budget) {
  return params.s > 0 ? params.s : std::max<Index>(1, budget / 2);
}

Index subgen_cluster_capacity(const SubgenParams& params, Index budget, Index d, Index dv) {
  const Index left = (budget - subgen_value_slots(params, budget)) * (d + dv);
  return std::max<Index>(0, left) / ((1 + params.t) * d);
}

MethodInfo subgen_method() {
  return with_params<SubgenParams>(
      {
          .name = "subgen",
          .paper = "SubGen, arXiv 2402.06082, Algorithm 1",
          .summary = "online key clusters for the denominator, value-norm samples for the numerator",
          .notes = "The radius is chosen so that the sets fit the budget at the end of the context (in a stream: with "
                   "hindsight, at the end of its prompt); subgen.delta or subgen.delta_r fix it instead, and then the "
                   "budget does not bind. Decoded tokens may open clusters beyond the budget. Values are sampled by "
                   "|v|^2; Lemma 1's preamble says |k|^2. The paper's own experiments are `subgen-kcenter`.",
          .complexity = {.compress = {"O(p n m' d), p passes for the radius", 1},
                         .query = {"O((s + m' t) (d + dv))"},
                         .memory = {"m' (1 + t) d + s (d + dv)"}},
          .kind = Kind::sampling,
          .streaming = true,
          .seeded = true,
          .properties = {.full_budget_exact = Property::no("values are sampled with replacement at any budget"),
                         .head_permutation = Property::no("draws are keyed by the head"),
                         .nested_budgets = Property::no("the clusters and the number of slots depend on the budget"),
                         .equal_bytes = Property::no("the number of clusters follows the keys"),
                         .weight_sum = WeightSum::context},
      },
      prepare);
}

}  // namespace kvbench::methods
