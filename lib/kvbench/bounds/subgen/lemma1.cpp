// SPDX-License-Identifier: Apache-2.0
// SubGen (arXiv 2402.06082), Lemma 1: at any step n, mu = sum over i <= n of |v_i|^2, and M is a list of s i.i.d.
// samples with
//   Pr[M(j) = (k_i, v_i)] = |v_i|^2 / mu.
//
// Reading: the text before the lemma samples by |k|^2; lemma, proof and listing by |v|^2: the latter. mu covers the
// newest token when a query is answered (line 6 comes before line 7). docs/theory/subgen.lemma1.md.
#include <kvbench/bounds/subgen/checks.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>

#include <kvbench/bounds/trials/law_tests.hpp>
#include <kvbench/core/statistics.hpp>
#include <kvbench/methods/sampling/reservoir.hpp>
#include <kvbench/methods/stages/draws.hpp>

namespace kvbench::bounds {
namespace {

constexpr double mu_tolerance = 1e-6;  // weights are fp32
constexpr Index tested_slots = 32;
constexpr Index appended_tokens = 8;
constexpr std::size_t token_runs = 8;  // runs of neighbouring tokens, for pairs

std::vector<double> first_of(const std::vector<double>& all, Index n) {
  return {all.begin(), all.begin() + static_cast<std::ptrdiff_t>(n)};
}

double sum(std::span<const double> x) { return std::accumulate(x.begin(), x.end(), 0.0); }

/// Probabilities of the first n tokens.
std::vector<double> slot_law(const SubgenValues& values, Index n) {
  std::vector<double> law = first_of(values.norms2, n);
  const double mu = sum(law);
  for (double& p : law) p /= mu;
  return law;
}

using Histories = std::vector<std::vector<std::vector<TokenId>>>;  // [seeds][times][slots]

void add_slot_row(CheckContext& context, const SubgenValues& values, Index n, std::size_t time,
                  const Histories& histories) {
  Stratum all{std::vector<double>(static_cast<std::size_t>(n)), slot_law(values, n)};
  double draws = 0;
  bool inside = true;
  for (const auto& history : histories) {
    for (const TokenId token : history[time]) {
      inside = inside && token >= 0 && token < n;
      if (inside) all.counts[static_cast<std::size_t>(token)] += 1;
      draws += 1;
    }
  }
  context.law({fmt::format("law of the slots after {} tokens", n)}, inside ? stratified_chi_square({&all, 1}) : 0,
              fmt::format("chi-square of {:.0f} draws against |v_i|^2 / mu", draws));
}

/// Pairs of slots at the last time, `apart` slots apart, each slot in one pair: 64 cells of two runs of tokens.
double pair_p_value(const SubgenValues& values, Index n, std::size_t apart, const Histories& histories) {
  const std::vector<double> law = slot_law(values, n);
  const std::vector<std::size_t> run = equal_runs(law, token_runs);
  std::vector<double> mass(token_runs);
  for (std::size_t i = 0; i < law.size(); ++i) mass[run[i]] += law[i];
  Stratum table{std::vector<double>(token_runs * token_runs), {}};
  for (const double p : mass)
    for (const double q : mass) table.law.push_back(p * q);
  for (const auto& history : histories) {
    const std::vector<TokenId>& held = history.back();
    for (std::size_t j = 0; j + apart < held.size(); ++j) {
      if (j % (2 * apart) >= apart) continue;
      const auto a = static_cast<std::size_t>(held[j]), b = static_cast<std::size_t>(held[j + apart]);
      table.counts[run[a] * token_runs + run[b]] += 1;
    }
  }
  return stratified_chi_square({&table, 1});
}

void add_pairs(CheckContext& context, const SubgenValues& values, Index n, const Histories& histories) {
  const std::size_t half = histories.front().back().size() / 2;
  const double near = pair_p_value(values, n, 1, histories), far = pair_p_value(values, n, half, histories);
  context.law(
      {fmt::format("slots are independent after {} tokens", n)}, 2 * std::min(near, far),
      fmt::format("chi-square of {} x {} runs of tokens: p = {:.3g} for neighbouring slots, {:.3g} for slots {} apart",
                  token_runs, token_runs, near, far, half));
}

/// One slot at two times: it keeps its token with probability mu1/mu2 whatever the token is, else it holds a later one
/// by its law. 8 x 9 cells; a change to an earlier token has probability 0.
double times_p_value(const SubgenValues& values, Index n1, Index n2, std::size_t time, const Histories& histories) {
  const std::vector<double> before = slot_law(values, n1), after = slot_law(values, n2);
  const double kept = sum(first_of(values.norms2, n1)) / sum(first_of(values.norms2, n2));
  const std::vector<double> later(after.begin() + static_cast<std::ptrdiff_t>(n1), after.end());
  if (sum(later) <= 0) return 1;
  const std::vector<std::size_t> old_run = equal_runs(before, token_runs), new_run = equal_runs(later, token_runs);
  std::vector<double> old_mass(token_runs), new_mass(token_runs);
  for (std::size_t i = 0; i < before.size(); ++i) old_mass[old_run[i]] += before[i];
  for (std::size_t i = 0; i < later.size(); ++i) new_mass[new_run[i]] += later[i];
  Stratum table{std::vector<double>(token_runs * (token_runs + 1)), {}};
  for (const double p : old_mass) {
    for (const double q : new_mass) table.law.push_back(p * q);
    table.law.push_back(p * kept);
  }
  for (const auto& history : histories) {
    for (std::size_t j = 0; j < history[time].size(); ++j) {
      const TokenId a = history[time][j], b = history[time + 1][j];
      if (b < n1 && b != a) return 0;
      const std::size_t column = b < n1 ? token_runs : new_run[static_cast<std::size_t>(b - n1)];
      table.counts[old_run[static_cast<std::size_t>(a)] * (token_runs + 1) + column] += 1;
    }
  }
  return stratified_chi_square({&table, 1});
}

void add_times(CheckContext& context, const SubgenValues& values, std::span<const Index> times,
               const Histories& histories) {
  std::string text;
  double least = 1;
  for (std::size_t t = 0; t + 1 < times.size(); ++t) {
    const double p = times_p_value(values, times[t], times[t + 1], t, histories);
    least = std::min(least, p);
    text += fmt::format("{}p = {:.3g} between {} and {} tokens",
                        t > 0 ? ", " : "chi-square of each slot's token, then and now: ", p, times[t], times[t + 1]);
  }
  context.law({"later draws owe nothing to earlier ones"}, least * static_cast<double>(times.size() - 1), text);
}

SlotHistory reservoir_history(const SubgenValues& values, const methods::HeadPrompt& head) {
  return [&values, &head](std::uint32_t seed, std::span<const Index> times) {
    const methods::Draws draws(seed, "subgen", head);
    methods::Reservoir reservoir(tested_slots, 0);
    std::vector<std::vector<TokenId>> history;
    Index n = 0;
    for (const Index time : times) {
      for (; n < time; ++n) reservoir.offer(draws, static_cast<TokenId>(n), values.norms2[static_cast<std::size_t>(n)]);
      std::vector<TokenId> held(static_cast<std::size_t>(tested_slots), -1);
      for (const methods::Reservoir::Slot& slot : reservoir.held()) held[slot.draw] = slot.token;
      history.push_back(std::move(held));
    }
    return history;
  };
}

/// Quarter, half and whole, from the first token on whose value is not zero.
std::vector<Index> stream_times(const SubgenValues& values, Index n) {
  std::vector<Index> times;
  for (const Index time : {n / 4, n / 2, n}) {
    if (time > 0 && sum(first_of(values.norms2, time)) > 0 && (times.empty() || times.back() < time))
      times.push_back(time);
  }
  return times;
}

void run_subgen_lemma1(CheckContext& context) {
  const Subject& subject = *context.subject;
  const SubgenValues values = subgen_values(subject);
  const Index n = subject.tokens();
  const std::vector<Index> times = stream_times(values, n);
  // One cluster: lemma 1 is about the slots alone.
  SubgenSetup setup{
      .params = {.t = 1, .s = tested_slots, .delta = 1e15}, .budget = std::max<Index>(1, n / 4), .slots = tested_slots};
  const SubgenRunner runner(subject, setup, context.backend);
  std::vector<SubgenSketch> sketches;
  std::vector<Index> tokens;
  for (const Index time : times) {
    const Index steps = std::min(appended_tokens, time - 1);
    for (SubgenSketch& sketch : runner.stream(time - steps, steps, 0)) sketches.push_back(std::move(sketch));
    for (Index i = time - steps; i <= time; ++i) tokens.push_back(i);
  }
  check_mu(context, values, tokens, sketches);
  check_entry_counts(context, values, tested_slots, [&](std::uint32_t seed) { return runner.kept(seed); });
  check_slots(context, values, times, reservoir_history(values, subject.head));
}

}  // namespace

void check_mu(CheckContext& context, const SubgenValues& values, std::span<const Index> tokens,
              std::span<const SubgenSketch> sketches) {
  std::int64_t failures = 0;
  double worst = 0;
  for (std::size_t i = 0; i < sketches.size(); ++i) {
    double kept = 0;
    for (std::size_t e = 0; e < sketches[i].ids.size(); ++e)
      kept += sketches[i].num[e] * values.norms2[static_cast<std::size_t>(sketches[i].ids[e])];
    const double mu = sum(first_of(values.norms2, tokens[i]));
    const double error = mu > 0 ? std::abs(kept / mu - 1) : std::abs(kept);
    worst = std::max(worst, error);
    failures += error <= mu_tolerance ? 0 : 1;  // NaN fails
  }
  context.exact({"mu covers every token, the newest one too"}, failures, std::ssize(sketches),
                fmt::format("sum of wN |v|^2 over the entries against sum of |v_i|^2 at {} stream times, {} of them "
                            "after one more token: largest relative difference {:.2g}",
                            sketches.size(), sketches.size() - sketches.size() / (appended_tokens + 1), worst),
                {.measured = worst, .bound = mu_tolerance});
}

void check_entry_counts(CheckContext& context, const SubgenValues& values, Index count, const Sketcher& sketcher) {
  Stratum all{std::vector<double>(values.norms2.size()), slot_law(values, static_cast<Index>(values.norms2.size()))};
  double uneven = 0;  // distance from whole numbers of slots
  for (Index seed = 0; seed < context.options.seeds; ++seed) {
    context.poll();
    // Other seeds than those of the slots, whose draws these would repeat.
    const SubgenSketch sketch = sketcher(context.seed(context.options.seeds + seed));
    for (std::size_t e = 0; e < sketch.ids.size(); ++e) {
      const auto id = static_cast<std::size_t>(sketch.ids[e]);
      const double held = sketch.num[e] * static_cast<double>(count) * values.norms2[id] / values.mu;
      uneven = std::max(uneven, std::abs(held - std::round(held)));
      all.counts[id] += std::round(held);
    }
  }
  const bool whole = uneven <= 1e-3 && sum(all.counts) == static_cast<double>(count * context.options.seeds);
  context.law({"law of the entries' weights", fmt::format("s={}", count)}, whole ? stratified_chi_square({&all, 1}) : 0,
              fmt::format("weights are whole numbers of mu / (s |v|^2) to within {:.2g} and count {:.0f} of {} slots; "
                          "chi-square against |v_i|^2 / mu",
                          uneven, sum(all.counts), count * context.options.seeds));
}

void check_slots(CheckContext& context, const SubgenValues& values, std::span<const Index> times,
                 const SlotHistory& history) {
  Histories histories;
  for (Index seed = 0; seed < context.options.seeds; ++seed) {
    context.poll();
    histories.push_back(history(context.seed(seed), times));
  }
  for (std::size_t t = 0; t < times.size(); ++t) add_slot_row(context, values, times[t], t, histories);
  add_pairs(context, values, times.back(), histories);
  if (times.size() > 1) add_times(context, values, times, histories);
}

Check subgen_lemma1() {
  return {
      .id = "subgen.lemma1",
      .paper = "SubGen, arXiv 2402.06082, Lemma 1",
      .statement = "mu is the sum of |v|^2 and each slot holds token i with probability |v_i|^2 / mu, independently",
      .run = run_subgen_lemma1};
}

}  // namespace kvbench::bounds
