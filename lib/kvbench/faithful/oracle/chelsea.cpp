// SPDX-License-Identifier: Apache-2.0
#include <kvbench/faithful/oracle/chelsea.hpp>

#include <algorithm>
#include <cmath>
#include <utility>

#include <kvbench/bounds/check/vectors.hpp>

namespace kvbench::faithful {
namespace {

constexpr double fp32_unit = 0x1p-24;             // relative rounding error of one operation
constexpr double cosine_rounding_fp32 = 0x1p-20;  // of a cosine in fp32; above the error of sums of 256 terms

/// Two tokens with the same key have the same similarities, in fp32 too.
bool same_token_key(const ChelseaEntry& a, const ChelseaEntry& b) {
  return a.rounding == 0 && b.rounding == 0 && a.key == b.key;
}

double key_length(const ChelseaEntry& entry) { return std::sqrt(bounds::squared_norm(entry.key)); }

double key_similarity(const ChelseaEntry& a, const ChelseaEntry& b, ChelseaRules::Similarity measure) {
  const double product = bounds::dot(a.key, b.key), lengths = key_length(a) * key_length(b);
  if (measure == ChelseaRules::Similarity::inner_product) return product;
  return lengths > 0 ? product / lengths : 0;
}

double similarity_rounding(const ChelseaEntry& a, const ChelseaEntry& b) {
  const auto relative = [](const ChelseaEntry& e) { return e.rounding > 0 ? e.rounding / key_length(e) : 0; };
  return cosine_rounding_fp32 + relative(a) + relative(b);
}

/// The mean over `members`, of which the last is the entry whose place the cluster takes.
ChelseaEntry merge_cluster(const std::vector<const ChelseaEntry*>& members, const ChelseaRules& rules) {
  ChelseaEntry out = *members.back();
  std::ranges::fill(out.key, 0.0);
  if (rules.merged_values) std::ranges::fill(out.value, 0.0);
  double mass = 0, degrees = 0, size = 0, rounding = 0;
  for (const ChelseaEntry* member : members) {
    const double weight = rules.weighted_means ? member->degree : 1;
    mass += weight, degrees += member->degree;
    size += weight * key_length(*member), rounding += weight * member->rounding;
    for (std::size_t c = 0; c < out.key.size(); ++c) out.key[c] += weight * member->key[c];
    for (std::size_t c = 0; c < out.value.size() && rules.merged_values; ++c) out.value[c] += weight * member->value[c];
  }
  for (double& x : out.key) x /= mass;
  for (double& x : out.value) x /= rules.merged_values ? mass : 1;
  if (rules.added_degrees) out.degree = degrees;
  out.rounding = (rounding + static_cast<double>(members.size() + 2) * fp32_unit * size) / mass;
  return out;
}

ChelseaEntry subject_token(const bounds::Subject& subject, Index i) {
  const auto key = subject.key(i), value = subject.value(i);
  return {.id = static_cast<TokenId>(i), .key = {key.begin(), key.end()}, .value = {value.begin(), value.end()}};
}

}  // namespace

ChelseaOracle::ChelseaOracle(const bounds::ChelseaSettings& settings, const ChelseaRules& rules, Index budget,
                             std::vector<ChelseaEntry> context)
    : settings_(settings),
      rules_(rules),
      budget_(budget),
      tokens_(std::ssize(context)),
      sinks_(rules.sinks_kept ? std::min(settings.sinks, budget / 4) : 0),
      recent_(rules.recent_kept ? std::min(settings.recent, budget / 2) : 0),
      slack_(std::min(settings.slack, (budget - sinks_ - recent_) / 2)),
      entries_(std::move(context)) {
  if (tokens_ > budget) compress(budget);
}

void ChelseaOracle::append(ChelseaEntry token) {
  token.id = static_cast<TokenId>(tokens_++);
  if (rules_.decoded == ChelseaRules::Decoded::lost) return;
  entries_.push_back(std::move(token));
  if (rules_.decoded == ChelseaRules::Decoded::merged) {
    merge_at_once();
  } else if (std::ssize(entries_) > budget_) {
    if (!rules_.rounds_continue) round_ = 0;
    compress(budget_ - slack_);
  }
}

/// The fault of merging a decoded token into its most similar entry instead of keeping it as a recent one.
void ChelseaOracle::merge_at_once() {
  const ChelseaEntry token = entries_.back();
  const auto score = [&](const ChelseaEntry& entry) { return key_similarity(token, entry, rules_.similarity); };
  const auto best = std::ranges::max_element(entries_.begin(), entries_.end() - 1, {}, score);
  if (best == entries_.end() - 1) return;
  *best = merge_cluster({&token, &*best}, rules_);
  entries_.pop_back();
}

void ChelseaOracle::compress(Index size) {
  const auto begin = entries_.begin() + sinks_, end = entries_.end() - recent_;
  middle_.assign(std::move_iterator(begin), std::move_iterator(end));
  const auto target = static_cast<std::size_t>(size - sinks_ - recent_);
  while (middle_.size() > target) run_round(target);
  entries_.insert(entries_.erase(begin, end), std::move_iterator(middle_.begin()), std::move_iterator(middle_.end()));
}

/// Removes what is needed, but at most the share of this round, at most half, and at least one entry.
void ChelseaOracle::run_round(std::size_t target) {
  const double share = std::max(settings_.ratio - settings_.decay * static_cast<double>(round_++), settings_.floor);
  const auto allowed = static_cast<std::size_t>(share * static_cast<double>(middle_.size()) + 1e-9);
  const std::size_t most = std::clamp<std::size_t>(allowed, 1, middle_.size() / 2);
  std::vector<bool> in_a(middle_.size());
  std::vector<Edge> edges = edges_of(in_a);
  prune(edges, std::min(middle_.size() - target, most) + static_cast<std::size_t>(rules_.merged_excess));
  std::vector<std::vector<const ChelseaEntry*>> members(middle_.size());
  std::vector<bool> joined(middle_.size());
  for (const Edge& edge : edges) {
    members[edge.to].push_back(&middle_[edge.from]);
    joined[edge.from] = true;
  }
  std::vector<ChelseaEntry> left, left_of_b;
  for (std::size_t i = 0; i < middle_.size(); ++i) {
    if (joined[i]) continue;
    members[i].push_back(&middle_[i]);
    (settings_.concat && !in_a[i] ? left_of_b : left)
        .push_back(members[i].size() > 1 ? merge_cluster(members[i], rules_) : middle_[i]);
  }
  left.insert(left.end(), std::move_iterator(left_of_b.begin()), std::move_iterator(left_of_b.end()));
  middle_ = std::move(left);
}

std::vector<ChelseaOracle::Edge> ChelseaOracle::edges_of(std::vector<bool>& in_a) const {
  const auto chunk = static_cast<std::size_t>(settings_.chunk + rules_.chunk_excess);
  std::vector<Edge> edges;
  for (std::size_t begin = 0; begin < middle_.size(); begin += chunk) {
    const std::size_t size = std::min(chunk, middle_.size() - begin);
    std::vector<std::size_t> a, b;
    for (std::size_t i = 0; i < size; ++i) {
      const bool first = rules_.sides == ChelseaRules::Sides::halves ? i < (size + 1) / 2 : i % 2 == 0;
      in_a[begin + i] = first;
      (first ? a : b).push_back(begin + i);
    }
    for (const std::size_t from : a) {
      if (!b.empty()) edges.push_back(edge_of(from, b));
    }
  }
  return edges;
}

ChelseaOracle::Edge ChelseaOracle::edge_of(std::size_t from, const std::vector<std::size_t>& partners) const {
  Edge best{.from = from, .to = partners.front(), .score = -INFINITY};
  std::vector<double> scores;
  for (const std::size_t to : partners) {
    const double value = key_similarity(middle_[from], middle_[to], rules_.similarity);
    scores.push_back(rules_.best_partner ? value : -value);
    if (scores.back() > best.score) best.score = scores.back(), best.to = to;
  }
  best.rounding = similarity_rounding(middle_[from], middle_[best.to]);
  const bool zero = key_length(middle_[from]) == 0;  // all cosines are 0, in fp32 too
  for (std::size_t p = 0; p < partners.size() && !zero; ++p) {
    if (partners[p] == best.to || same_token_key(middle_[partners[p]], middle_[best.to])) continue;
    best.close |= best.score - scores[p] <= best.rounding + similarity_rounding(middle_[from], middle_[partners[p]]);
  }
  if (!rules_.best_partner) best.score = -best.score;
  return best;
}

/// Leaves the `count` best edges. A partner matters only where its edge is left.
void ChelseaOracle::prune(std::vector<Edge>& edges, std::size_t count) {
  const double sign = rules_.best_edges ? 1 : -1;
  std::ranges::stable_sort(edges, [&](const Edge& x, const Edge& y) { return sign * x.score > sign * y.score; });
  count = std::min(count, edges.size());
  for (std::size_t i = 0; i < count; ++i) {
    decided_ &= !edges[i].close;
    for (std::size_t j = count; j < edges.size(); ++j) {
      if (std::abs(edges[i].score - edges[j].score) > edges[i].rounding + edges[j].rounding) continue;
      decided_ &= same_token_key(middle_[edges[i].from], middle_[edges[j].from]) &&
                  same_token_key(middle_[edges[i].to], middle_[edges[j].to]);
    }
  }
  edges.resize(count);
}

bounds::Snapshot ChelseaOracle::snapshot() const {
  bounds::Snapshot out{.tokens = tokens_};
  for (const ChelseaEntry& entry : entries_) {
    const double weight = rules_.weights_are_degrees ? entry.degree : 1;
    out.held.push_back({.id = entry.id, .num = weight, .den = weight, .key = entry.key, .value = entry.value});
  }
  std::ranges::sort(out.held, {}, &bounds::HeldEntry::id);
  return out;
}

OracleRun chelsea_oracle(const bounds::Subject& subject, const bounds::StreamPlan& plan,
                         const bounds::ChelseaSettings& settings, const ChelseaRules& rules) {
  std::vector<ChelseaEntry> context;
  for (Index i = 0; i < plan.prompt; ++i) context.push_back(subject_token(subject, i));
  ChelseaOracle cache(settings, rules, plan.budget, std::move(context));
  OracleRun run;
  for (Index i = plan.prompt; i <= plan.prompt + plan.appended; ++i) {
    run.times.push_back(cache.snapshot());
    if (cache.decided()) run.decided = std::ssize(run.times);
    if (i < plan.prompt + plan.appended) cache.append(subject_token(subject, i));
  }
  return run;
}

}  // namespace kvbench::faithful
