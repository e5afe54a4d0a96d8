// SPDX-License-Identifier: Apache-2.0
#include <kvbench/methods/stages/competition.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>

#include <fmt/format.h>

#include <kvbench/methods/stages/score_only.hpp>

namespace kvbench::methods {
namespace {

/// Fractions that differ by less are equal: they are rounded sums.
constexpr double fraction_unit = 1e-6;

/// The scores of the tokens that no rule protects, by head.
std::vector<std::vector<float>> candidates(const std::vector<TokenScores>& scores, Index n, Backend& backend) {
  std::vector<std::vector<float>> out;
  for (const TokenScores& head : scores) {
    const std::vector<float> all = backend.read(head.scores);
    out.emplace_back(all.begin() + head.sinks, all.begin() + n - head.recent);
  }
  return out;
}

}  // namespace

Competition::Competition(const std::vector<std::vector<float>>& scores) : places_(scores.size()) {
  std::vector<float> all;
  std::vector<std::size_t> ends;
  for (const std::vector<float>& own : scores) {
    all.insert(all.end(), own.begin(), own.end());
    ends.push_back(all.size());
  }
  total_ = std::ssize(all);
  std::vector<std::uint32_t> order(all.size());
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::sort(order,
                    [&](std::uint32_t a, std::uint32_t b) { return all[a] > all[b] || (all[a] == all[b] && a < b); });
  for (std::uint32_t place = 0; place < order.size(); ++place) {
    const auto owner = std::ranges::upper_bound(ends, std::size_t{order[place]}) - ends.begin();
    places_[static_cast<std::size_t>(owner)].push_back(place);
  }
}

std::vector<Index> Competition::won(Index count, Index safe) const {
  std::vector<Index> out(places_.size());
  const auto sum_before = [&](Index place) {
    for (std::size_t c = 0; c < places_.size(); ++c) {
      const Index before = std::ranges::lower_bound(places_[c], place) - places_[c].begin();
      out[c] = std::max(before, std::min(safe, std::ssize(places_[c])));
    }
    return std::accumulate(out.begin(), out.end(), Index{0});
  };
  Index low = 0, high = total_;  // the first place before which so many lie
  while (low < high) {
    const Index middle = (low + high) / 2;
    if (sum_before(middle) < count)
      low = middle + 1;
    else
      high = middle;
  }
  sum_before(low);
  return out;
}

Index Competition::place(std::size_t competitor, Index k) const {
  const std::vector<std::uint32_t>& own = places_[competitor];
  return k < std::ssize(own) ? Index{own[static_cast<std::size_t>(k)]} : total_;
}

std::vector<Index> rounded_shares(const std::vector<double>& parts, const Competition& ranking, Index unit) {
  std::vector<Index> out;
  std::vector<std::tuple<std::int64_t, Index, std::size_t>> order;  // largest fraction, first place, lowest competitor
  double sum = 0;
  for (std::size_t c = 0; c < parts.size(); ++c) {
    const double whole = std::floor(parts[c] + fraction_unit);
    out.push_back(static_cast<Index>(whole));
    order.emplace_back(-std::llround((parts[c] - whole) / fraction_unit), ranking.place(c, unit * out.back()), c);
    sum += parts[c];
  }
  std::ranges::sort(order);
  const Index left = std::llround(sum) - std::accumulate(out.begin(), out.end(), Index{0});
  for (Index i = 0; i < left; ++i) ++out[std::get<2>(order[static_cast<std::size_t>(i)])];
  return out;
}

void require_all_heads(std::span<const HeadPrompt> heads, const std::string& does, const char* of_layer) {
  const Index all = heads.front().num_kv_heads;
  if (std::ssize(heads) < all)
    throw Unavailable(fmt::format("{} all {} {}, and has {} of them; omit --heads", does, all, of_layer, heads.size()));
}

MakeCaches compete(const std::string& method, std::span<const HeadPrompt> given, std::vector<TokenScores> scores,
                   ShareOut share_out, Backend& backend) {
  const HeadPrompt& any = given.front();
  require_all_heads(given, method + " lets", "kv heads of a layer compete");
  for (const TokenScores& head : scores) {
    if (head.sinks == scores.front().sinks && head.recent == scores.front().recent) continue;
    throw Unavailable(
        fmt::format("{} lets heads compete, and their scores leave out different numbers of last tokens", method));
  }
  const Competition ranking(candidates(scores, any.tokens(), backend));
  const std::vector<HeadPrompt> heads(given.begin(), given.end());
  return [=, &backend](Index budget, std::uint32_t /*seed*/) {
    const Index n = heads.front().tokens(), kept = std::min(budget, n);
    const Protected fixed = protected_within(scores.front(), kept);
    const Index protects = fixed.sinks + fixed.recent, each = kept - protects;
    const bool equal = kept == n || each == 0;
    const std::vector<Index> own = equal ? std::vector<Index>(heads.size(), each) : share_out(ranking, each, protects);
    Caches caches;
    for (std::size_t h = 0; h < heads.size(); ++h)
      caches.push_back(keep_best(heads[h], scores[h], protects + own[h], backend, !equal));
    return caches;
  };
}

}  // namespace kvbench::methods
