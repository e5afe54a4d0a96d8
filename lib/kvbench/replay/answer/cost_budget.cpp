// SPDX-License-Identifier: Apache-2.0
#include <kvbench/replay/answer/cost_budget.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include <fmt/format.h>

namespace kvbench::replay {
namespace {

/// Runs the cache over all queries and counts the entries that answer them. `observes`: it is shown their attention,
/// without which it may drop no token.
void count_entries(ConfigurationRun& run, bool observes, std::span<const Head> heads, Backend& backend) {
  for_each_block(heads, {}, backend, [&](std::span<HeadBlock> blocks) {
    run.start(blocks);
    for (QueryRun part; (part = run.advance(blocks.front().exact.block.positions, backend)).size() > 0;) {
      run.collect(blocks, part, backend);
      for (std::size_t h = 0; h < heads.size(); ++h) {
        if (observes)
          run.answer(blocks[h], part, h, nullptr, backend);
        else
          run.count(blocks[h], part, h);
      }
      run.observe();
    }
  });
}

struct Point {
  Index tokens = 0;
  double cost = 0;
};

/// Tokens at which the line through two points reaches `limit`. Where it does not rise, the points are on the same side
/// of the limit, and only the last number on the other side is left to try.
Index interpolate(const Point& a, const Point& b, double limit) {
  const double slope = (b.cost - a.cost) / static_cast<double>(b.tokens - a.tokens);
  if (slope <= 0) return b.cost > limit ? 0 : std::numeric_limits<Index>::max();
  return a.tokens + static_cast<Index>(std::clamp(std::floor((limit - a.cost) / slope + 1e-9), -1e15, 1e15));
}

}  // namespace

double cost_share(CostKind cost, methods::Caches caches, ConfigurationRun::Options options, double outside,
                  std::span<const Head> heads, Backend& backend) {
  options.keep_raw = options.keep_exact = false;
  options.noise_floors = {}, options.context_mass = {};  // which the run fills
  std::vector<ConfigurationResult> results(heads.size());
  std::vector<ConfigurationResult*> pointers;
  for (ConfigurationResult& result : results) pointers.push_back(&result);
  ConfigurationRun run(std::move(caches), options, heads, pointers, backend);
  if (cost == CostKind::read || options.observes) {
    count_entries(run, options.observes, heads, backend);
  } else {
    while (run.advance(heads.front().positions, backend).size() > 0) {
    }
  }
  run.finish();
  return cost_share(cost, outside, pointers);
}

double cost_share(CostKind cost, double outside, std::span<ConfigurationResult* const> results) {
  double held = 0, full = 0;
  for (const ConfigurationResult* result : results)
    held += result->bytes.of(cost) - outside, full += result->bytes.full - outside;
  return held / full;
}

StoredBytes stored_bytes(const methods::Codecs& codecs, Index d, Index dv) {
  constexpr Index n = 1 << 16;
  StoredBytes out{};
  const auto add = [&](const methods::Codec* codec, Index cols, std::size_t at) {
    if (codec == nullptr) return;  // stored in 16 bits: no row is encoded
    const Index rows = codec->encoded(n, n);
    out[at] = static_cast<double>(rows);
    for (const methods::FootprintArray& array : codec->footprint(rows, cols)) {
      out[at + 1] += element_bytes(array.element, methods::Element::f16) * static_cast<double>(array.rows * array.cols);
    }
  };
  add(codecs.keys.get(), d, 0), add(codecs.values.get(), dv, 2);
  return out;
}

Index largest_within(double limit, Index guess, Index most, const std::function<double(Index)>& cost,
                     const std::function<std::string(Index)>& describe) {
  constexpr int interpolations = 6;         // after these the cost is not linear, and bisection continues
  std::optional<Point> below, above, last;  // costs within and beyond the limit; the point evaluated before
  Index too_few = 0, too_many = most + 1;   // numbers of tokens that the method cannot keep
  std::string reason;
  Index tokens = std::clamp<Index>(guess, 1, most);
  for (int trial = 0;; ++trial) {
    std::optional<Point> other;
    try {
      const Point point{tokens, cost(tokens)};
      const bool within = point.cost <= limit;
      other = within && above ? above : !within && below ? below : last ? last : Point{};
      last = (within ? below : above) = point;
    } catch (const methods::Infeasible& error) {
      if (below)
        too_many = tokens;  // more than it can keep: a limit of its work
      else
        too_few = std::max(too_few, tokens);
      reason = error.what();
    }
    const Index low = below ? below->tokens : too_few, high = std::min(above ? above->tokens : most + 1, too_many);
    if (high - low <= 1) break;
    const bool line = other && trial < interpolations;
    tokens = std::clamp(line ? interpolate(*other, *last, limit) : (low + high) / 2, low + 1, high - 1);
  }
  if (below && (too_many > most || (above && above->tokens < too_many))) return below->tokens;
  if (below || !above) throw methods::Infeasible(reason);
  throw methods::Infeasible(
      fmt::format("the method costs at least {:.4g} % of the full cache, {}; the budget is {:.4g} %", 100 * above->cost,
                  describe(above->tokens), 100 * limit));
}

}  // namespace kvbench::replay
