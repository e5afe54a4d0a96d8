// SPDX-License-Identifier: Apache-2.0
// BalanceKV (arXiv 2502.07861), Theorem 3.1 and section 4. The theorem states memory O*(1/eps), that is, an error that
// falls like 1/memory instead of 1/sqrt(memory) for independent samples. In the theorem the batch t grows with the
// budget; the experiments use blocks of a fixed size. With fixed blocks the variances of the errors of n/b blocks add,
// and the exponent is -1/2 however good the walk is; only growing blocks can give -1.
//
// The check halves a list T = 1 .. 4 times, in fixed blocks or in one block as long as the list. It fits a line to the
// logarithm of the error of the numerator, relative to its exact value, over that of the number of tokens kept. The
// slopes of different seeds are independent. docs/theory/balancekv.exponent.md.
#include <kvbench/bounds/balancekv/checks.hpp>

#include <algorithm>
#include <cmath>
#include <numbers>

#include <kvbench/core/statistics.hpp>

namespace kvbench::bounds {
namespace {

/// Slopes that are compatible with -1 and logarithmic factors.
constexpr double steepest = -1.1, flattest = -0.8;

/// The tokens that remain of a list after some halvings, and their common weight.
struct Halved {
  std::vector<std::int32_t> ids;
  double weight = 1;
};

WalkSample rows_of(const WalkSample& sample, const std::vector<std::int32_t>& ids) {
  WalkSample out{.n = std::ssize(ids), .d = sample.d, .dv = sample.dv, .scale = sample.scale, .head = sample.head};
  for (const std::int32_t id : ids) {
    out.keys.insert(out.keys.end(), sample.keys.begin() + id * sample.d, sample.keys.begin() + (id + 1) * sample.d);
    out.values.insert(out.values.end(), sample.values.begin() + id * sample.dv,
                      sample.values.begin() + (id + 1) * sample.dv);
  }
  return out;
}

void halve(Halved& list, const WalkSample& sample, Index block, const BlockSigns& signs, std::uint32_t draw) {
  const std::vector<std::int32_t> starts = methods::block_starts(std::ssize(list.ids), block);
  std::vector<std::int32_t> kept;
  for (const std::int32_t place : methods::smaller_halves(signs(rows_of(sample, list.ids), starts, draw), starts)) {
    kept.push_back(list.ids[static_cast<std::size_t>(place)]);
  }
  list.ids = std::move(kept);
  list.weight *= 2;
}

/// Mean over queries of ln(|N' - N| / sum of lengths).
double mean_log_error(std::span<const QueryRows> queries, const Halved& list, Index n) {
  std::vector<double> weights(static_cast<std::size_t>(n), -1);
  for (const std::int32_t id : list.ids) weights[static_cast<std::size_t>(id)] += list.weight;
  double sum = 0;
  for (const QueryRows& query : queries) {
    const double relative = weighted_norm(query, weights) / query.absolute;
    sum += std::log(std::max(relative, 1e-12));
  }
  return sum / static_cast<double>(queries.size());
}

/// Slope for samples of n/2^T of n tokens without replacement, ln sqrt(2^T - 1) over -T ln 2; it is -1/2 in the limit
/// only.
double slope_of_samples(Index rounds) {
  std::vector<double> x, y;
  for (Index round = 1; round <= rounds; ++round) {
    x.push_back(-static_cast<double>(round) * std::numbers::ln2);
    y.push_back(std::log(std::ldexp(1.0, static_cast<int>(round)) - 1) / 2);
  }
  return slope(x, y);
}

std::string describe(std::span<const double> slopes, const Interval& interval, double samples) {
  const bool as_samples = interval.lo <= -0.5 && samples <= interval.hi;
  const bool inverse = interval.lo <= flattest && steepest <= interval.hi && !as_samples;
  return fmt::format(
      "slope {:.3f}, 95 % [{:.3f}, {:.3f}] over {} seeds: {}; independent samples have {:.3f} at these rates",
      mean(slopes), interval.lo, interval.hi, slopes.size(),
      inverse              ? "like 1/memory"
      : as_samples         ? "like independent samples"
      : interval.lo > -0.5 ? "flatter than independent samples"
                           : "steeper than independent samples, flatter than 1/memory",
      samples);
}

/// One-sided p-value of "the slope is -0.8 or steeper".
double p_of_inverse(std::span<const double> slopes) {
  const double centre = mean(slopes), error = standard_error(slopes);
  if (error == 0) return centre <= flattest ? 1 : 0;
  const double beyond = student_p((centre - flattest) / error, static_cast<double>(slopes.size()) - 1) / 2;
  return centre > flattest ? beyond : 1 - beyond;
}

void run_balancekv_exponent(CheckContext& context) {
  const ExponentSetup setup{.seed_offset = context.options.seed_offset};
  const WalkSample sample = walk_sample(*context.subject, setup.tokens, true);
  // Half = smaller changes the total weight at every round, half = exact does not. Greedy signs show the effect on the
  // slope.
  for (const auto& [constant, pairs] :
       {std::pair("paper", true), {"tight", true}, {"greedy", true}, {"greedy", false}}) {
    const std::string name = fmt::format("{};half={}", constant, pairs ? "exact" : "smaller");
    check_exponent(context, sample, evenly_spaced_rows(context.subject->queries, context.subject->d(), 4), setup, name,
                   library_blocks(constant, pairs, context.backend));
  }
}

}  // namespace

BlockSigns library_blocks(const std::string& constant, bool pairs, Backend& backend) {
  return
      [constant, pairs, &backend](const WalkSample& list, const std::vector<std::int32_t>& starts, std::uint32_t draw) {
        const methods::Draws draws(draw, "checks of balancekv, exponent", list.head);
        methods::WalkRows rows{.keys = backend.adopt(std::vector(list.keys), list.n, list.d), .starts = starts};
        if (list.dv > 0) rows.values = backend.adopt(std::vector(list.values), list.n, list.dv);
        for (Index i = 0; i < list.n; ++i) rows.uniforms.push_back(draws.uniform(i));
        return softmax_balance(
                   rows, {.constant = methods::parse_walk_constant("c", constant), .pairs = pairs, .scale = list.scale},
                   backend)
            .signs;
      };
}

std::vector<double> error_slopes(const WalkSample& sample, const std::vector<float>& queries,
                                 const ExponentSetup& setup, bool growing, const BlockSigns& signs,
                                 const std::function<void()>& poll) {
  std::vector<QueryRows> asked = query_rows(sample, queries);
  std::erase_if(asked, [](const QueryRows& query) { return query.absolute == 0; });
  if (asked.empty()) throw methods::Unavailable("all values are zero, or there are no queries");
  std::vector<double> slopes;
  for (Index seed = 0; seed < setup.seeds; ++seed) {
    poll();
    Halved list;
    const std::uint32_t draw_seed = setup.seed_offset + static_cast<std::uint32_t>(seed);
    // The list starts at a random token, which is the only random number where signs are greedy.
    const double start = methods::Draws(draw_seed, "checks of balancekv, start", sample.head).uniform(0);
    for (Index i = 0; i < sample.n; ++i) {
      list.ids.push_back(
          static_cast<std::int32_t>((i + static_cast<Index>(start * static_cast<double>(sample.n))) % sample.n));
    }
    std::vector<double> x, y;
    for (Index round = 0; round < setup.rounds && std::ssize(list.ids) >= 4; ++round) {
      const Index block = growing ? std::ssize(list.ids) : setup.fixed_block;
      halve(list, sample, block, signs, draw_seed * 64 + static_cast<std::uint32_t>(round));
      if (list.ids.empty()) break;
      x.push_back(std::log(static_cast<double>(list.ids.size())));
      y.push_back(mean_log_error(asked, list, sample.n));
    }
    if (x.size() >= 2) slopes.push_back(slope(x, y));
  }
  if (slopes.size() < 2)
    throw methods::Unavailable(
        fmt::format("{} tokens cannot be halved twice: they are too few, or all get the same sign", sample.n));
  return slopes;
}

void check_exponent(CheckContext& context, const WalkSample& sample, const std::vector<float>& queries,
                    const ExponentSetup& setup, const std::string& constant, const BlockSigns& signs) {
  const double samples = slope_of_samples(setup.rounds);
  for (const bool growing : {false, true}) {
    const auto slopes = error_slopes(sample, queries, setup, growing, signs, [&] { context.poll(); });
    const Interval interval = student_interval(slopes);
    const Statement statement{growing ? "block = the list, error ~ 1/memory" : "fixed block",
                              fmt::format("n={};T=1..{};block={};c={}", sample.n, setup.rounds,
                                          growing ? "list" : fmt::format("{}", setup.fixed_block), constant)};
    const Figures figures{
        .measured = mean(slopes), .bound = growing ? flattest : samples, .measured_q99 = quantile(slopes, 0.99)};
    const std::string text = describe(slopes, interval, samples);
    const double p = p_of_inverse(slopes);
    // The theorem is about growing blocks; the row of fixed blocks is for comparison.
    CheckRow& row = growing ? context.claim(statement, decide_between(1 - p, p), text, figures)
                            : context.data(statement, figures, text);
    row.trials = std::ssize(slopes);
  }
}

Check balancekv_exponent() {
  return {.id = "balancekv.exponent",
          .paper = "BalanceKV, arXiv 2502.07861, Theorem 3.1 and section 4",
          .statement =
              "the error falls like 1 / memory where blocks grow with the list, and like 1 / sqrt(memory) where they "
              "are fixed",
          .run = run_balancekv_exponent};
}

}  // namespace kvbench::bounds
