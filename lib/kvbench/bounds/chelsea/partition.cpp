// SPDX-License-Identifier: Apache-2.0
// Chelsea (arXiv 2506.11418), section 5.2 and Theorem 6.1: the theorem is about similarities that depend on the
// distance alone. The rows compare alternating sides with halves and with random sides on the cosines of the keys
// themselves, by the objective of the theorem (all pairs between A and B) and by that of the algorithm (the best edge
// of each token of A). docs/theory/chelsea.thm61.md.
#include <kvbench/bounds/chelsea/checks.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>

#include <kvbench/bounds/check/vectors.hpp>
#include <kvbench/bounds/trials/contrast.hpp>

namespace kvbench::bounds {
namespace {

constexpr Index first_tokens = 16, examined_tokens = 1024;
constexpr std::uint32_t random_partitions = 8;
constexpr std::size_t examined_heads = 64;

/// Differences of alternating sides to halves and to random sides, one per head.
struct PartitionGains {
  std::vector<double> halves_pairs, halves_edges, random_pairs, random_edges;
};

Sides halves_of(Index n) {
  Sides sides(static_cast<std::size_t>(n), 1);
  std::fill(sides.begin() + n / 2, sides.end(), -1);
  return sides;
}

/// The mean over the chunks of a head.
void add_partition_gains(const Subject& subject, Index chunk, const Sides& alternating, PartitionGains& gains) {
  const Index n = std::min(subject.tokens(), examined_tokens), d = subject.d();
  const std::span<const float> keys(subject.keys);
  double chunks = 0, sums[4] = {};
  for (Index begin = first_tokens; begin + chunk <= n; begin += chunk, ++chunks) {
    const Cosines cosines =
        cosines_of(keys.subspan(static_cast<std::size_t>(begin * d), static_cast<std::size_t>(chunk * d)), d);
    const Kept best = kept_by(cosines, alternating), halves = kept_by(cosines, halves_of(chunk)),
               random = kept_by_random(cosines, random_partitions);
    sums[0] += best.pairs - halves.pairs, sums[1] += best.edges - halves.edges;
    sums[2] += best.pairs - random.pairs, sums[3] += best.edges - random.edges;
  }
  gains.halves_pairs.push_back(sums[0] / chunks), gains.halves_edges.push_back(sums[1] / chunks);
  gains.random_pairs.push_back(sums[2] / chunks), gains.random_edges.push_back(sums[3] / chunks);
}

void run_chelsea_partition(CheckContext& context) {
  const auto subjects = trace_subjects(*context.reader, {}, {}, 1);
  const std::size_t step = (subjects.size() + examined_heads - 1) / examined_heads;
  std::vector<Subject> heads;
  Index shortest = examined_tokens;
  for (std::size_t s = 0; s < subjects.size(); s += step) {
    heads.push_back(subjects[s].load(context.backend));
    shortest = std::min(shortest, heads.back().tokens() - first_tokens);
  }
  if (shortest < 64) throw methods::Unavailable("the context is too short: a chunk has 64 tokens");
  for (const Index chunk : {Index{64}, std::min<Index>(256, shortest / 2 * 2)}) {
    const Sides alternating = sides_of(registered_chelsea(), chunk, chunk, context.backend);
    PartitionGains gains;
    for (const Subject& head : heads) {
      context.poll();
      add_partition_gains(head, chunk, alternating, gains);
    }
    const auto add_row = [&](const char* part, const std::vector<double>& differences, const char* what) {
      add_claim(context,
                {fmt::format("chunks of {}, {}", chunk, part), fmt::format("unit=head;tokens={}", examined_tokens)},
                contrast(differences), what);
    };
    add_row("all pairs, against halves", gains.halves_pairs, "mean cosine between A and B, alternating less halves");
    add_row("all pairs, against random sides", gains.random_pairs,
            "mean cosine between A and B, alternating less random sides");
    add_row("best edges, against halves", gains.halves_edges, "mean cosine of the best edges, alternating less halves");
    add_row("best edges, against random sides", gains.random_edges,
            "mean cosine of the best edges, alternating less random sides");
  }
}

}  // namespace

Cosines cosines_of(std::span<const float> rows, Index d) {
  const auto width = static_cast<std::size_t>(d), n = rows.size() / width;
  const auto row = [&](std::size_t i) { return rows.subspan(i * width, width); };
  Cosines cosines(n, std::vector<double>(n, 1));
  std::vector<double> lengths;
  for (std::size_t i = 0; i < n; ++i) lengths.push_back(std::sqrt(squared_norm(row(i))));
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      const double product = lengths[i] * lengths[j];
      cosines[i][j] = cosines[j][i] = product > 0 ? dot(row(i), row(j)) / product : 0;
    }
  }
  return cosines;
}

Kept kept_by(const Cosines& cosines, std::span<const int> sides) {
  double pairs = 0, pair_sum = 0, tokens = 0, edge_sum = 0;
  for (std::size_t i = 0; i < sides.size(); ++i) {
    if (sides[i] < 0) continue;
    double best = -INFINITY;
    for (std::size_t j = 0; j < sides.size(); ++j) {
      if (sides[j] > 0) continue;
      ++pairs, pair_sum += cosines[i][j];
      best = std::max(best, cosines[i][j]);
    }
    ++tokens, edge_sum += best;
  }
  return {.pairs = pair_sum / pairs, .edges = edge_sum / tokens};
}

Kept kept_by_random(const Cosines& cosines, std::uint32_t draws) {
  const std::size_t n = cosines.size(), all_pairs = n * (n - 1) / 2;
  Kept kept;
  // Each pair is split with the same probability.
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < i; ++j) kept.pairs += cosines[i][j] / static_cast<double>(all_pairs);
  }
  for (std::uint32_t draw = 0; draw < draws; ++draw) {
    std::vector<std::size_t> order(n);
    std::iota(order.begin(), order.end(), 0);
    std::ranges::sort(order, {}, [&](std::size_t i) {
      return philox4x32({{static_cast<std::uint32_t>(i), draw, 0, 0}}, {61, 3}).x[0];
    });
    Sides sides(n, 1);
    for (std::size_t i = 0; i < n / 2; ++i) sides[order[i]] = -1;
    kept.edges += kept_by(cosines, sides).edges / draws;
  }
  return kept;
}

Check chelsea_partition() {
  return {.id = "chelsea.partition",
          .paper = "Chelsea, arXiv 2506.11418, section 5.2 and Theorem 6.1",
          .statement =
              "alternating sides of a chunk keep more similarity of the keys between them than halves or random sides",
          .scope = Scope::trace,
          .run = run_chelsea_partition};
}

}  // namespace kvbench::bounds
