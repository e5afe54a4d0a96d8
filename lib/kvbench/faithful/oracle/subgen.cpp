// SPDX-License-Identifier: Apache-2.0
#include <kvbench/faithful/oracle/subgen.hpp>

#include <algorithm>
#include <cmath>
#include <map>

namespace kvbench::faithful {
namespace {

constexpr double total_slack = 1e-12;     // of sums in fp64
constexpr double covering_margin = 1e-3;  // of the radius at which the bisection begins, and its precision
constexpr int most_bisections = 40;

/// How far, relatively, an fp32 sum of squared differences may be off in comparison with another one, or with the
/// square of a radius that was itself found from such a sum: an upper bound, 3 (d + 8) roundings of 2^-24.
double fp32_distance_slack(Index d) { return 3 * static_cast<double>(d + 8) * std::ldexp(1.0, -24); }

/// Whether fp32 could order two squared distances otherwise. Infinite ones stand for representatives that do not exist.
bool fp32_could_swap(double a, double b, Index d) {
  return std::isfinite(a) && std::isfinite(b) && std::abs(a - b) <= fp32_distance_slack(d) * std::max(a, b);
}
/// The same for a distance and a radius: equal keys have the distance 0 in every precision.
bool near_radius(double distance, double radius2, Index d) {
  return distance > 0 && fp32_could_swap(distance, radius2, d);
}

/// Squared distances of a key to representatives.
struct Distances {
  std::size_t nearest = 0;  ///< of equals the lowest
  double least = INFINITY, second = INFINITY;
};

Distances distances_to(const bounds::Subject& subject, Index token, std::span<const TokenId> representatives) {
  Distances found;
  for (std::size_t c = 0; c < representatives.size(); ++c) {
    const double distance = bounds::squared_distance(subject.key(token), subject.key(representatives[c]));
    if (distance < found.least) {
      found.second = found.least;
      found.least = distance;
      found.nearest = c;
    } else {
      found.second = std::min(found.second, distance);
    }
  }
  return found;
}

std::size_t first_within(const bounds::Subject& subject, Index token, std::span<const TokenId> representatives,
                         double radius2) {
  std::size_t c = 0;
  while (bounds::squared_distance(subject.key(token), subject.key(representatives[c])) > radius2) ++c;
  return c;
}

/// The number of clusters at a radius; capacity + 1 where there are more than that.
struct ClusterCount {
  Index clusters = 0;
  bool decided = true;
};

ClusterCount count_at(const bounds::Subject& subject, Index tokens, double radius, Index capacity) {
  std::vector<TokenId> representatives;
  bool decided = true;
  for (Index i = 0; i < tokens && std::ssize(representatives) <= capacity; ++i) {
    const double least = distances_to(subject, i, representatives).least;
    decided = decided && !near_radius(least, radius * radius, subject.d());
    if (least > radius * radius) representatives.push_back(static_cast<TokenId>(i));
  }
  return {std::ssize(representatives), decided};
}

}  // namespace

SubgenClusters subgen_clusters(const bounds::Subject& subject, Index prompt, Index tokens, double delta,
                               const SubgenRules& rules) {
  SubgenClusters clusters;
  clusters.decided = tokens;
  std::vector<TokenId> representatives;
  for (Index i = 0; i < tokens; ++i) {
    const double radius = rules.radius * (i < prompt ? 1 : rules.decoded_radius) * delta, radius2 = radius * radius;
    const Distances distances = distances_to(subject, i, representatives);
    const bool joins = distances.least <= radius2;
    // Ties go to the lowest cluster, but distances that are equal here need not be equal in fp32.
    const bool open = near_radius(distances.least, radius2, subject.d()) ||
                      (joins && fp32_could_swap(distances.least, distances.second, subject.d()));
    if (open) clusters.decided = std::min(clusters.decided, i);
    std::size_t cluster = representatives.size();
    if (joins) cluster = rules.nearest ? distances.nearest : first_within(subject, i, representatives, radius2);
    clusters.labels.push_back(static_cast<std::int32_t>(cluster));
    if (!joins) {
      representatives.push_back(static_cast<TokenId>(i));
      clusters.opened_by.push_back(static_cast<TokenId>(i));
    } else if (!rules.first_key_represents) {
      representatives[cluster] = static_cast<TokenId>(i);
    }
  }
  return clusters;
}

SubgenRadius subgen_budget_radius(const bounds::Subject& subject, Index tokens, Index capacity) {
  if (count_at(subject, tokens, 0, capacity).clusters <= capacity) return {};
  double farthest = 0;
  for (Index i = 0; i < tokens; ++i)
    farthest = std::max(farthest, bounds::squared_distance(subject.key(i), subject.key(0)));
  SubgenRadius found{.delta = std::sqrt(farthest) * (1 + covering_margin)};
  double too_small = 0;
  Index clusters = 1;
  for (int step = 0;
       step < most_bisections && clusters < capacity && found.delta - too_small > covering_margin * found.delta;
       ++step) {
    const double radius = (too_small + found.delta) / 2;
    const ClusterCount count = count_at(subject, tokens, radius, capacity);
    found.decided = found.decided && count.decided;
    if (count.clusters > capacity) {
      too_small = radius;
    } else {
      found.delta = radius;
      clusters = count.clusters;
    }
  }
  return found;
}

Index subgen_most_clusters(const bounds::Subject& subject, const SubgenSizes& sizes, Index budget) {
  const Index pair = subject.d() + subject.dv(), numbers = budget * pair - sizes.s * pair;
  return numbers < 0 ? 0 : numbers / ((1 + sizes.t) * subject.d());
}

SubgenLists::SubgenLists(const bounds::Subject& subject, const SubgenClusters& clusters, const SubgenSizes& sizes,
                         std::uint32_t seed, const SubgenRules& rules)
    : subject_(subject),
      clusters_(clusters),
      sizes_(sizes),
      rules_(rules),
      draws_(rules.seeded ? seed : 0, "subgen", subject.head),
      values_{.slots = std::vector<Slot>(static_cast<std::size_t>(sizes.s))} {
  samples_.assign(clusters.opened_by.size(), {.slots = std::vector<Slot>(static_cast<std::size_t>(sizes.t))});
}

void SubgenLists::take(Index token) {
  const auto cluster = static_cast<std::size_t>(clusters_.labels[static_cast<std::size_t>(token)]);
  offer(samples_[cluster], token, 1, rules_.cluster_draw, rules_.samples_replaced);
  offer(values_, token, rules_.value_weight(subject_.key(token), subject_.value(token)), rules_.value_draw, true);
}

void SubgenLists::offer(List& list, Index token, double weight, std::uint32_t first_draw, bool replace) {
  list.newest = weight;
  if (weight == 0) return;
  list.total += weight;
  const double reached = rules_.newest_in_total ? list.total : list.total - weight;
  for (std::size_t j = 0; j < list.slots.size(); ++j) {
    Slot& slot = list.slots[j];
    const bool empty = slot.token < 0;
    if (!empty && !replace) continue;
    if (!empty && std::abs(slot.until - reached) <= total_slack * reached) decided_ = false;
    if (!empty && reached < slot.until) continue;
    const double u = draws_.uniform(token, first_draw + static_cast<std::uint32_t>(j) * rules_.draw_step);
    slot = {.token = static_cast<TokenId>(token), .weight = weight, .until = list.total / u};
  }
}

std::vector<bounds::HeldEntry> SubgenLists::entries() const {
  std::map<TokenId, bounds::HeldEntry> held;
  const auto at = [&](TokenId token) -> bounds::HeldEntry& {
    const auto [place, is_new] = held.try_emplace(token);
    if (is_new) place->second.id = token, place->second.num = place->second.den = 0;
    return place->second;
  };
  const double mu = rules_.newest_in_mu ? values_.total : values_.total - values_.newest;
  for (const Slot& slot : values_.slots) {
    if (slot.token >= 0) at(slot.token).num += rules_.slot_weight(mu, static_cast<double>(sizes_.s), slot.weight);
  }
  for (const List& cluster : samples_) {
    for (const Slot& slot : cluster.slots) {
      if (slot.token >= 0) at(slot.token).den += rules_.sample_weight(cluster.total, static_cast<double>(sizes_.t));
    }
  }
  std::vector<bounds::HeldEntry> entries;
  for (auto& [token, entry] : held) entries.push_back(std::move(entry));
  return entries;
}

std::vector<TokenId> SubgenLists::slots() const {
  std::vector<TokenId> tokens;
  for (const Slot& slot : values_.slots) tokens.push_back(slot.token);
  return tokens;
}

OracleRun subgen_oracle(const bounds::Subject& subject, const bounds::StreamPlan& plan, const SubgenSizes& sizes,
                        const SubgenRules& rules) {
  const Index end = plan.prompt + plan.appended;
  const SubgenClusters clusters = subgen_clusters(subject, plan.prompt, end, sizes.delta, rules);
  SubgenLists lists(subject, clusters, sizes, plan.seed, rules);
  OracleRun run;
  for (Index tokens = 0; tokens <= end; ++tokens) {
    if (tokens > 0 && (tokens <= plan.prompt || rules.decoded_taken)) lists.take(tokens - 1);
    if (tokens < plan.prompt) continue;
    run.times.push_back({.tokens = tokens, .held = lists.entries()});
    if (lists.decided() && tokens <= clusters.decided) run.decided = std::ssize(run.times);
  }
  return run;
}

}  // namespace kvbench::faithful
