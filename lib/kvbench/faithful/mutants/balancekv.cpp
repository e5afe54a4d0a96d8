// SPDX-License-Identifier: Apache-2.0
#include <kvbench/faithful/mutants/mutant.hpp>

#include <algorithm>
#include <cmath>

#include <kvbench/bounds/balancekv/checks.hpp>
#include <kvbench/bounds/check/vectors.hpp>
#include <kvbench/faithful/checks/checks.hpp>

namespace kvbench::faithful {
namespace {

/// A list of checks; names of theorems are those of the claims.
enum Checks : unsigned { batch = 1, streams = 2, law = 4, tree = 8, theorem31 = 16 };

struct BalanceFault {
  std::string id, fault, place;
  unsigned checks = batch | streams;
  void (*plant)(BalanceRules&) = nullptr;
  bool uneven = false;  ///< shows on tokens of different norms only: see with_uneven_norms()
};

/// 2^i <= norm < 2^{i+1}, as line 4 of Algorithm 1 reads with its inequalities turned round.
int bucket_below(double norm) { return static_cast<int>(std::floor(std::log2(norm))); }

/// 2^{i-1} <= norm < 2^i.
int bucket_with_lower_edge(double norm) { return bucket_below(norm) + 1; }

WalkVectors vectors_of_sample(const bounds::WalkSample& sample) {
  return {.d = sample.d, .dv = sample.dv, .scale = double{sample.scale}, .keys = sample.keys, .values = sample.values};
}

BalanceSetup setup_of(const methods::WalkSettings& settings) {
  using Kind = methods::WalkConstant::Kind;
  const Kind kind = settings.constant.kind;
  return {.constant = kind == Kind::paper    ? "paper"
                      : kind == Kind::tight  ? "tight"
                      : kind == Kind::greedy ? "greedy"
                                             : fmt::format("{}", settings.constant.value),
          .delta = settings.delta,
          .pairs = settings.pairs};
}

methods::Draws draws_of_checks(std::uint32_t seed) {
  return methods::Draws(seed, "checks of balancekv", methods::HeadPrompt{});
}

BalanceUnderTest faulty_balance(const BalanceRules& rules) {
  return [rules](const bounds::Subject& subject, const bounds::StreamPlan& plan, const BalanceSetup& setup) {
    return balance_oracle(subject, plan, setup, rules)->times;
  };
}

bounds::SignWalk faulty_walk(const BalanceRules& rules) {
  return [rules](const bounds::WalkSample& sample, const methods::WalkSettings& settings, std::uint32_t seed) {
    BalanceCalls calls(vectors_of_sample(sample), draws_of_checks(seed), setup_of(settings), rules);
    std::vector<Index> tokens;
    for (Index i = 0; i < sample.n; ++i) tokens.push_back(i);
    SignedTokens last;
    const auto signs = calls.sign(tokens, radii_of(calls.vectors(sample.dv == 0), tokens), sample.dv == 0, 0, last);
    return methods::WalkSigns{.signs = {signs.begin(), signs.end()}, .fails = calls.fails, .steps = calls.steps};
  };
}

bounds::TreeSketch faulty_tree(const BalanceRules& rules) {
  return [rules](const bounds::WalkSample& sample, const bounds::TreeSettings& settings, std::uint32_t seed) {
    BalanceCalls calls(vectors_of_sample(sample), draws_of_checks(seed), setup_of(settings.walk), rules);
    PaperTree sketch({.t = settings.t,
                      .levels = settings.levels,
                      .value_radius = sample.dv > 0 ? rules.stream.value_radius * settings.value_radius : 0});
    for (Index i = 0; i < sample.n; ++i) sketch.take(i, calls);
    bounds::TreeOutcome outcome{.weights = std::vector<double>(static_cast<std::size_t>(sample.n))};
    for (std::size_t l = 0; l < sketch.levels().size(); ++l) {
      outcome.sizes.push_back(std::ssize(sketch.levels()[l]));
      for (const Index i : sketch.levels()[l])
        outcome.weights[static_cast<std::size_t>(i)] += PaperTree::weight(l, rules.stream);
    }
    outcome.fails = calls.fails;
    outcome.steps = calls.steps;
    return outcome;
  };
}

/// `balancekv` in the configuration of balancekv.thm31, on the first n tokens.
bounds::StreamSketch faulty_stream(const bounds::Subject& subject, Index n, const bounds::Theorem31Setup& setup,
                                   double delta, const BalanceRules& rules) {
  return [&subject, n, setup, delta, rules](std::uint32_t seed) {
    const BalanceSetup configuration{
        .constant = "tight", .delta = delta, .stream = true, .rounds = setup.levels, .t = setup.t, .eps = setup.eps};
    const bounds::StreamPlan plan{.prompt = n, .budget = 2 * n, .seed = seed};
    bounds::TokenWeights weights{.num = std::vector<double>(static_cast<std::size_t>(n)),
                                 .den = std::vector<double>(static_cast<std::size_t>(n))};
    const OracleRun run = *balance_oracle(subject, plan, configuration, rules);
    for (const bounds::HeldEntry& entry : run.times[0].held) {
      weights.num[static_cast<std::size_t>(entry.id)] = entry.num;
      weights.den[static_cast<std::size_t>(entry.id)] = entry.den;
    }
    return weights;
  };
}

/// The rows need no more seeds to be compared with each other, and a mutant must be quick.
constexpr Index most_seeds = 40;

void run_tree(const bounds::CheckContext& context, const BalanceRules& rules) {
  const bounds::Theorem33Setup setup{
      .t = 32, .delta = context.options.delta, .seeds = std::min(context.options.seeds, most_seeds)};
  const bounds::WalkSample sample = walk_sample(*context.subject, setup.t << setup.levels, false);
  if (sample.n < 2 * setup.t) return;
  bounds::CheckContext own = context.as("balancekv.thm33");
  check_theorem33(own, sample, bounds::evenly_spaced_rows(context.subject->queries, sample.d, 2), setup,
                  faulty_tree(rules));
}

void run_theorem31(const bounds::CheckContext& context, const BalanceRules& rules) {
  const bounds::Subject& subject = *context.subject;
  const bounds::Theorem31Setup setup{.t = 32,
                                     .eps = context.options.eps,
                                     .delta = context.options.delta,
                                     .seeds = std::min(context.options.seeds, most_seeds)};
  const bounds::WalkSample sample = walk_sample(subject, setup.t << setup.levels, true);
  if (sample.n == 0 || subject.queries.empty() || radii(sample).value == 0) return;
  bounds::CheckContext own = context.as("balancekv.thm31");
  check_theorem31(own, sample, bounds::evenly_spaced_rows(subject.queries, sample.d, 2), setup,
                  faulty_stream(subject, sample.n, setup, delta_of_calls(sample, setup), rules));
}

/// The same tokens with keys of 1/2 to 5/4 of their length, and values of 1/4 to 4 times theirs.
bounds::Subject with_uneven_norms(const bounds::Subject& subject, Backend& backend) {
  bounds::Subject uneven = subject;
  for (std::size_t i = 0; i < uneven.keys.size(); ++i) {
    uneven.keys[i] *= 0.5f + static_cast<float>(static_cast<Index>(i) / subject.d() / 64 % 4) / 4;
  }
  for (std::size_t i = 0; i < uneven.values.size(); ++i) {
    uneven.values[i] *= std::ldexp(1.0f, static_cast<int>(static_cast<Index>(i) / subject.dv() * 7 % 5) - 2);
  }
  uneven.head.keys = backend.adopt(std::vector(uneven.keys), subject.tokens(), subject.d());
  uneven.head.values = backend.adopt(std::vector(uneven.values), subject.tokens(), subject.dv());
  return uneven;
}

void run_fault(bounds::CheckContext& context, unsigned checks, const BalanceRules& rules) {
  bounds::CheckContext exact = context.as("balancekv.algorithms");
  for (const BalanceCase& item : balance_cases(*context.subject)) {
    if ((checks & (item.setup.stream ? streams : batch)) != 0) check_balance_case(exact, item, faulty_balance(rules));
  }
  if ((checks & law) != 0) {
    bounds::CheckContext walk = context.as("balancekv.walk");
    for (const bool with_values : {false, true}) {
      const bounds::WalkSample sample = with_short_keys(walk_sample(*context.subject, 48, with_values), 0.5);
      check_walk(walk, sample, faulty_walk(rules));
    }
  }
  if ((checks & tree) != 0) run_tree(context, rules);
  if ((checks & theorem31) != 0) run_theorem31(context, rules);
}

std::vector<BalanceFault> walk_faults() {
  constexpr unsigned all = batch | streams | law;
  const std::string lines = "Algorithm 2, ";
  return {
      {"fair-coins", "the walk ignores the sums: every sign is a fair coin", lines + "line 8", all,
       [](BalanceRules& r) { r.walk.drift = 0; }},
      {"drift", "p = 1/2 + s / (2 c R^2): the walk drifts away from 0", lines + "line 8", all | tree,
       [](BalanceRules& r) { r.walk.drift = 1; }},
      {"log-base", "c = 30 log2(n / delta)", lines + "line 3", batch | streams | tree,
       [](BalanceRules& r) { r.walk.natural_log = false; }},
      {"constant", "c = 3 ln(n / delta)", lines + "line 3", batch | streams | tree,
       [](BalanceRules& r) { r.walk.factor = 3; }},
      {"no-constant", "the threshold is R^2, without c", lines + "lines 7 and 8", all | tree,
       [](BalanceRules& r) { r.walk.threshold_has_c = false; }},
      {"double-threshold", "p = 1/2 - s / (4 c R^2): the threshold is twice as high", lines + "line 8", all,
       [](BalanceRules& r) { r.walk.drift = -0.5; }},
      {"key-norm", "R has r_key in place of r_key^2 in its exponent", lines + "line 2", all,
       [](BalanceRules& r) { r.walk.key_radius_squared = false; }},
      {"value-product", "the sums leave out <v_i, v_j>", lines + "line 6", all,
       [](BalanceRules& r) { r.walk.value_product = false; }},
      {"pair-radius", "the radius is not widened for differences of pairs", "section 4, and Algorithm 2, line 1",
       batch | streams | tree, [](BalanceRules& r) { r.walk.pair_radius2 = r.walk.pair_radius2_of_ones = 1; }},
      {"flipped-sign", "one sign of every call is flipped", lines + "line 9", all,
       [](BalanceRules& r) { r.walk.flipped_step = 5; }},
      {"left-over-sum", "every batch starts with the sum left over from the one before", lines + "line 4",
       batch | streams, [](BalanceRules& r) { r.walk.own_sum = false; }},
      {"larger-half", "the larger sign class is kept", lines + "lines 12 to 16", batch | streams | tree,
       [](BalanceRules& r) { r.walk.keep_smaller = false; }},
  };
}

std::vector<BalanceFault> batch_faults() {
  return {
      {"no-doubling", "a round of halving does not double the weights", "section 2.2", batch,
       [](BalanceRules& r) { r.batch.weight = 1; }},
      {"first-radii", "all blocks have the radii of the first", "Algorithm 2, line 1", batch,
       [](BalanceRules& r) { r.batch.own_radii = false; }, true},
      {"same-draws", "all rounds read the same draws", "Algorithm 2, line 9", batch,
       [](BalanceRules& r) { r.batch.new_draws = false; }},
      {"lost-decoded", "decoded tokens are lost", "section 4.2, and Algorithm 1, line 3", batch | streams,
       [](BalanceRules& r) { r.batch.keeps_decoded = r.stream.takes_decoded = false; }},
  };
}

std::vector<BalanceFault> stream_faults() {
  const std::string lines = "Algorithm 1, ";
  return {
      {"bucket", "norm buckets are 2^i <= |v| < 2^{i+1}", lines + "line 4", streams | theorem31,
       [](BalanceRules& r) { r.stream.bucket = bucket_below; }},
      {"bucket-edge", "norm buckets are 2^{i-1} <= |v| < 2^i", lines + "line 4", streams,
       [](BalanceRules& r) { r.stream.bucket = bucket_with_lower_edge; }},
      {"cut-per-token", "the cut of buckets is eps / 2 in place of eps / (2 n)", lines + "line 9", streams | theorem31,
       [](BalanceRules& r) { r.stream.cut_per_token = false; }, true},
      {"cut-key-norm", "the cut of buckets leaves out exp(-a r^2)", lines + "line 9", streams | theorem31,
       [](BalanceRules& r) { r.stream.cut_by_key_norm = false; }},
      {"cut-present-value", "the cut reads the present |v| in place of the largest", lines + "lines 6 to 9", streams,
       [](BalanceRules& r) { r.stream.cut_by_largest_value = false; }, true},
      {"bucket-radius", "r_value is the lower edge of the bucket", "Algorithm 2, line 1", streams | tree,
       [](BalanceRules& r) { r.stream.value_radius = 0.5; }},
      {"shared-set", "D has the kept set of N in place of its own with v = 1", lines + "line 14", streams | theorem31,
       [](BalanceRules& r) { r.stream.own_denominator = false; }},
      {"shared-draws", "N and D share their draws", lines + "lines 5 and 14", streams | theorem31,
       [](BalanceRules& r) { r.stream.own_draws = false; }},
      {"level-weight", "tokens of level l have weight l + 1 in place of 2^l", lines + "line 16",
       streams | tree | theorem31, [](BalanceRules& r) { r.stream.doubles_weights = false; }},
      {"never-merged", "level 1 is never reduced", "Algorithm 3, lines 11 to 16", streams | tree,
       [](BalanceRules& r) { r.stream.merges_levels = false; }},
      {"not-cleared", "a level that was reduced keeps its first token", "Algorithm 3, line 13", streams | tree,
       [](BalanceRules& r) { r.stream.clears_levels = false; }},
  };
}

Mutant mutant_of(const BalanceFault& fault) {
  return {.id = "balancekv." + fault.id,
          .method = "balancekv",
          .fault = fault.fault,
          .place = "BalanceKV, " + fault.place,
          .run = [fault](bounds::CheckContext& context) {
            BalanceRules rules;
            fault.plant(rules);
            if (!fault.uneven) return run_fault(context, fault.checks, rules);
            const bounds::Subject subject = with_uneven_norms(*context.subject, context.backend);
            bounds::CheckContext own{.subject = &subject,
                                     .options = context.options,
                                     .backend = context.backend,
                                     .stop = context.stop,
                                     .rows = context.rows,
                                     .check = context.check};
            run_fault(own, fault.checks, rules);
          }};
}

Mutant repo_mutant(const std::string& id, const std::string& fault, const RepoRules& rules) {
  return {.id = "balancekv-repo." + id,
          .method = "balancekv-repo",
          .fault = fault,
          .place = "released code",
          .run = [rules](bounds::CheckContext& context) {
            bounds::CheckContext exact = context.as("balancekv.released");
            const auto faulty = [&](const bounds::Subject& subject, const bounds::StreamPlan& plan,
                                    const RepoSetup& setup) {
              return balance_repo_oracle(subject, plan, setup, rules)->times;
            };
            for (const RepoCase& item : repo_cases(*context.subject)) check_repo_case(exact, item, faulty);
          }};
}

}  // namespace

std::vector<Mutant> balancekv_mutants() {
  std::vector<Mutant> all;
  for (const auto& faults : {walk_faults(), batch_faults(), stream_faults()}) {
    for (const BalanceFault& fault : faults) all.push_back(mutant_of(fault));
  }
  all.push_back(repo_mutant("no-offset", "0.025 is not added to inner products of values", {.offset = 0}));
  all.push_back(repo_mutant("mean", "the mean of the keys leaves out the padding", {.padded_mean = false}));
  all.push_back(repo_mutant("first-sign", "the first sign of a block is drawn", {.first_positive = false}));
  all.push_back(
      repo_mutant("weights", "later rounds balance values without their weights", {.weighted_values = false}));
  return all;
}

}  // namespace kvbench::faithful
