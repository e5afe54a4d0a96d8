// SPDX-License-Identifier: Apache-2.0
// SubGen (arXiv 2402.06082), Lemma 2: at any step the keys are partitioned into C_1 .. C_m, and for each i
//   (1) x_i in C_i   (2) n_i = |C_i|   (3) |x_i - k| <= delta for k in C_i   (4) |x_i - x_j| > delta for j != i
//   (5) S_i is t i.i.d. uniform samples of C_i.
// (1) to (4) are deterministic and checked in fp64; a distance may miss delta by the rounding of its fp32 sum. n_i
//     shows in the
// entries: the weights wD = n_i/t of a cluster's t samples sum to n_i. docs/theory/subgen.lemma2.md.
#include <kvbench/bounds/subgen/checks.hpp>

#include <algorithm>
#include <cmath>

#include <kvbench/core/statistics.hpp>

namespace kvbench::bounds {
namespace {

constexpr double distance_rounding = 1e-5;  // relative, of an fp32 distance
constexpr double weight_rounding = 1e-5;
constexpr Index most_representatives = 800;  // of which all pairs are compared
constexpr Index nearest_tokens = 200;        // for which all representatives are compared

/// Failures of a deterministic statement.
class Count {
 public:
  void add(bool holds) {
    ++trials_;
    failures_ += holds ? 0 : 1;
  }
  void show(CheckContext& context, const SubgenSetup& setup, const std::string& part, const std::string& text) const {
    context.exact({fmt::format("{} after {} tokens", part, setup.partition.labels.size()), setup.text()}, failures_,
                  trials_, text);
  }

 private:
  std::int64_t failures_ = 0, trials_ = 0;
};

std::size_t label(const SubgenSetup& setup, Index token) {
  return static_cast<std::size_t>(setup.partition.labels[static_cast<std::size_t>(token)]);
}

/// Labels number the clusters without gaps, and each cluster holds its representative.
bool check_members(CheckContext& context, const SubgenSetup& setup) {
  Count count;
  bool inside = true;
  for (const std::int32_t cluster : setup.partition.labels) {
    inside = inside && cluster >= 0 && cluster < setup.clusters();
    count.add(cluster >= 0 && cluster < setup.clusters());
  }
  for (Index c = 0; c < setup.clusters(); ++c) {
    const TokenId x = setup.partition.representatives[static_cast<std::size_t>(c)];
    count.add(setup.partition.labels[static_cast<std::size_t>(x)] == c);
  }
  count.show(context, setup, "partition and (1)", fmt::format("{} clusters", setup.clusters()));
  return inside;
}

void check_sizes(CheckContext& context, const SubgenSetup& setup, const SubgenSketch& sketch) {
  std::vector<double> sizes(setup.sizes.size()), weights(setup.sizes.size());
  for (std::size_t i = 0; i < setup.partition.labels.size(); ++i) sizes[label(setup, static_cast<Index>(i))] += 1;
  for (std::size_t e = 0; e < sketch.ids.size(); ++e) weights[label(setup, sketch.ids[e])] += sketch.den[e];
  Count count;
  double worst = 0;
  for (std::size_t c = 0; c < sizes.size(); ++c) {
    const double error = std::abs(weights[c] / sizes[c] - 1);
    worst = std::max(worst, error);
    count.add(error <= weight_rounding);
  }
  count.show(context, setup, "(2)",
             fmt::format("weights of each cluster's samples against its size: worst difference {:.2g}", worst));
}

void check_radius(CheckContext& context, const SubgenSetup& setup) {
  const Subject& subject = *context.subject;
  const double limit = setup.delta() * (1 + distance_rounding);
  Count count;
  double farthest = 0;
  for (std::size_t i = 0; i < setup.partition.labels.size(); ++i) {
    const TokenId x = setup.partition.representatives[label(setup, static_cast<Index>(i))];
    const double distance = std::sqrt(squared_distance(subject.key(static_cast<Index>(i)), subject.key(x)));
    farthest = std::max(farthest, distance);
    count.add(distance <= limit);
  }
  count.show(context, setup, "(3)", fmt::format("farthest key from its representative: {:.6g}", farthest));
}

void check_apart(CheckContext& context, const SubgenSetup& setup) {
  const Subject& subject = *context.subject;
  const double limit = setup.delta() * (1 - distance_rounding);
  const Index step = (setup.clusters() + most_representatives - 1) / most_representatives;
  Count count;
  double nearest = INFINITY;
  for (Index i = 0; i < setup.clusters(); i += step) {
    for (Index j = 0; j < i; j += step) {
      const double distance =
          std::sqrt(squared_distance(subject.key(setup.partition.representatives[static_cast<std::size_t>(i)]),
                                     subject.key(setup.partition.representatives[static_cast<std::size_t>(j)])));
      nearest = std::min(nearest, distance);
      count.add(distance > limit || (setup.delta() == 0 && distance > 0));
    }
  }
  count.show(context, setup, "(4)",
             fmt::format("nearest two representatives: {:.6g}{}", nearest,
                         step > 1 ? fmt::format("; one in {} looked at", step) : ""));
}

/// Line 12: no representative that was there is nearer than the one that was joined.
void check_nearest(CheckContext& context, const SubgenSetup& setup) {
  const Subject& subject = *context.subject;
  const auto n = static_cast<Index>(setup.partition.labels.size());
  const Index step = std::max<Index>(1, n / nearest_tokens);
  Count count;
  for (Index i = step - 1; i < n; i += step) {
    const auto distance = [&](TokenId x) { return std::sqrt(squared_distance(subject.key(i), subject.key(x))); };
    const double joined = distance(setup.partition.representatives[label(setup, i)]);
    double least = joined;
    for (const TokenId x : setup.partition.representatives) {
      if (x <= i) least = std::min(least, distance(x));
    }
    count.add(joined <= least * (1 + distance_rounding) || joined <= least + distance_rounding * setup.delta());
  }
  count.show(context, setup, "nearest representative", fmt::format("one token in {}", step));
}

/// How often each token was sampled, and how often so many samples of a cluster came from its earlier half.
struct Samples {
  std::vector<Stratum> tokens, halves;
  std::vector<std::size_t> rank;  ///< of each token in its cluster
  double uneven = 0;              ///< distance of weights from whole multiples of n_i / t
};

Samples empty_samples(const SubgenSetup& setup) {
  Samples samples;
  const auto t = static_cast<std::size_t>(setup.params.t);
  std::vector<std::size_t> seen(setup.sizes.size());
  for (std::size_t i = 0; i < setup.partition.labels.size(); ++i)
    samples.rank.push_back(seen[label(setup, static_cast<Index>(i))]++);
  for (const double size : setup.sizes) {
    const auto n = static_cast<std::size_t>(size);
    samples.tokens.push_back({std::vector<double>(n), std::vector<double>(n, 1 / size)});
    const double early = std::floor(size / 2) / size;
    Stratum half{std::vector<double>(t + 1), {}};
    for (std::size_t k = 0; k <= t; ++k) {
      const double log = std::lgamma(static_cast<double>(t) + 1) - std::lgamma(static_cast<double>(k) + 1) -
                         std::lgamma(static_cast<double>(t - k) + 1);
      half.law.push_back(std::exp(log) * std::pow(early, static_cast<double>(k)) *
                         std::pow(1 - early, static_cast<double>(t - k)));
    }
    samples.halves.push_back(std::move(half));
  }
  return samples;
}

void count_samples(const SubgenSetup& setup, const SubgenSketch& sketch, Samples& samples) {
  std::vector<double> early(setup.sizes.size());
  for (std::size_t e = 0; e < sketch.ids.size(); ++e) {
    if (sketch.den[e] == 0) continue;
    const std::size_t cluster = label(setup, sketch.ids[e]),
                      rank = samples.rank[static_cast<std::size_t>(sketch.ids[e])];
    const double drawn = sketch.den[e] * static_cast<double>(setup.params.t) / setup.sizes[cluster];
    samples.uneven = std::max(samples.uneven, std::abs(drawn - std::round(drawn)));
    samples.tokens[cluster].counts[rank] += std::round(drawn);
    if (static_cast<double>(rank) < std::floor(setup.sizes[cluster] / 2)) early[cluster] += std::round(drawn);
  }
  for (std::size_t c = 0; c < early.size(); ++c)
    samples.halves[c].counts[std::min(static_cast<std::size_t>(early[c]), samples.halves[c].counts.size() - 1)] += 1;
}

/// The clusters of the first n keys at the radius of `setup`.
SubgenSetup prefix_setup(const Subject& subject, const SubgenSetup& setup, Index n, Backend& backend) {
  SubgenSetup prefix = setup;
  prefix.set_partition(
      methods::leader_partition(backend, subject.head.keys.slice(0, n), setup.partition.radius, n).value());
  return prefix;
}

void run_subgen_lemma2(CheckContext& context) {
  const Subject& subject = *context.subject;
  const Index n = subject.tokens();
  for (const SubgenSetup& usual : usual_setups(subject, largest_query(subgen_queries(subject)), context.backend)) {
    const SubgenSetup setup = clusters_alone(usual);
    for (const Index time : {n / 4, n}) {
      if (time < 1) continue;
      const SubgenSetup prefix = time == n ? setup : prefix_setup(subject, setup, time, context.backend);
      const SubgenRunner runner(subject, prefix, context.backend);
      check_clusters(context, prefix, runner.stream(time, 0, 0).front());
    }
    const SubgenRunner runner(subject, setup, context.backend);
    check_samples(context, setup, [&](std::uint32_t seed) { return runner.kept(seed); });
  }
}

}  // namespace

void check_clusters(CheckContext& context, const SubgenSetup& setup, const SubgenSketch& sketch) {
  if (!check_members(context, setup)) return;
  check_sizes(context, setup, sketch);
  check_radius(context, setup);
  check_apart(context, setup);
  check_nearest(context, setup);
}

void check_samples(CheckContext& context, const SubgenSetup& setup, const Sketcher& sketcher) {
  Samples samples = empty_samples(setup);
  const auto shared = std::ranges::count_if(setup.sizes, [](double size) { return size > 1; });
  for (Index seed = 0; shared > 0 && seed < context.options.seeds; ++seed) {
    context.poll();
    count_samples(setup, sketcher(context.seed(seed)), samples);
  }
  const auto show = [&](const std::string& part, std::span<const Stratum> strata, const std::string& text) {
    const double p = samples.uneven <= 1e-3 ? stratified_chi_square(strata) : 0;
    CheckRow& row = context.law({part, setup.text()}, p, text);
    if (shared == 0) row.unmet("every cluster holds one key");
  };
  show("(5) samples are uniform", samples.tokens,
       fmt::format(
           "chi-square over {} clusters of more than one key; weights are whole numbers of n_i/t to within {:.2g}",
           shared, samples.uneven));
  show("(5) samples are independent", samples.halves,
       "chi-square: the samples from the earlier half of a cluster are binomial in number");
}

Check subgen_lemma2() {
  return {.id = "subgen.lemma2",
          .paper = "SubGen, arXiv 2402.06082, Lemma 2",
          .statement = "clusters partition the keys, with radius and distance delta, and hold t uniform samples each",
          .run = run_subgen_lemma2};
}

}  // namespace kvbench::bounds
