// SPDX-License-Identifier: Apache-2.0
// BalanceKV (arXiv 2502.07861), Algorithms 1 to 4 and section 4, token by token: the ids and weights that `balancekv`
// holds after the prompt and after every appended token are those of a recomputation in fp64 from the same draws. The
// same for the released code and `balancekv-repo`. docs/theory/balancekv.algorithms.md.
#include <kvbench/faithful/checks/checks.hpp>

#include <algorithm>
#include <cmath>
#include <set>

#include <kvbench/bounds/check/vectors.hpp>

namespace kvbench::faithful {
namespace {

/// Prefixes of a subject: long enough for several blocks and levels, short enough for sums over all pairs of tokens.
constexpr Index batch_tokens = 501, stream_tokens = 640, tokens_of_empty_start = 150;
constexpr Index appended_to_batch = 8, appended_to_stream = 64;

bounds::StreamPlan of_prompt(const bounds::Subject& subject, Index tokens, Index appended) {
  const Index all = std::min(tokens, subject.tokens()), last = std::min(appended, all - 1);
  return {.prompt = all - last, .appended = last};
}

bounds::StreamPlan batch_plan(const bounds::Subject& subject, Index rate) {
  bounds::StreamPlan plan = of_prompt(subject, batch_tokens, appended_to_batch);
  plan.budget = std::max<Index>(1, plan.prompt / rate);
  return plan;
}

/// A budget in which any t and T fit.
bounds::StreamPlan with_room(bounds::StreamPlan plan) {
  plan.budget = 2 * (plan.prompt + plan.appended) + 4;
  return plan;
}

bounds::StreamPlan stream_plan(const bounds::Subject& subject) {
  return with_room(of_prompt(subject, stream_tokens, appended_to_stream));
}

bounds::StreamPlan budget_of_stream(const bounds::Subject& subject) {
  bounds::StreamPlan plan = stream_plan(subject);
  plan.budget = std::max<Index>(1, plan.prompt * 3 / 4);
  return plan;
}

bounds::StreamPlan empty_start(const bounds::Subject& subject) {
  return with_room({.prompt = 0, .appended = std::min(tokens_of_empty_start, subject.tokens())});
}

/// The eps at which line 9 of Algorithm 1 erases about half of the buckets of a context. Where exp(-a r^2) underflows:
/// the default.
double eps_that_cuts(const bounds::Subject& subject, const bounds::StreamPlan& plan, double otherwise) {
  double key2 = 0, largest = 0;
  std::set<int> buckets;
  for (Index i = 0; i < plan.prompt; ++i) {
    const double norm = std::sqrt(bounds::squared_norm(subject.value(i)));
    key2 = std::max(key2, double{subject.head.scale} * bounds::squared_norm(subject.key(i)));
    largest = std::max(largest, norm);
    if (norm > 0) buckets.insert(bucket_of_norm(norm));
  }
  if (buckets.empty() || key2 > 500) return otherwise;
  const int middle = *std::next(buckets.begin(), (std::ssize(buckets) - 1) / 2);
  return 1.1 * std::ldexp(1.0, middle) / largest * 2 * static_cast<double>(plan.prompt) * std::exp(key2);
}

/// The same keys with values along one axis, whose norms are exactly 2^-1, 2^0 and 2^1 in turn.
bounds::Subject with_edge_values(const bounds::Subject& subject, Backend& backend) {
  bounds::Subject edges = subject;
  std::ranges::fill(edges.values, 0.0f);
  for (Index i = 0; i < subject.tokens(); ++i) {
    edges.values[static_cast<std::size_t>(i * subject.dv())] = std::ldexp(1.0f, static_cast<int>(i % 3) - 1);
  }
  edges.head.values = backend.adopt(std::vector(edges.values), subject.tokens(), subject.dv());
  return edges;
}

/// Adds one row for several seeds: first the snapshots that are decided, of all seeds, then the others.
template <class Case, class Observe, class Expect>
void add_seeds_row(bounds::CheckContext& context, const Case& item, const Observe& observe, const Expect& expect) {
  bounds::StreamPlan plan = item.plan;
  std::vector<bounds::Snapshot> observed, undecided;
  OracleRun all;
  const std::string params =
      fmt::format("{};{}..{}", item.setup.text(), plan.text(), plan.seed + static_cast<std::uint32_t>(item.seeds) - 1);
  for (Index seed = 0; seed < item.seeds; ++seed, ++plan.seed) {
    context.poll();
    const auto expected = expect(plan);
    if (!expected) return;
    const std::vector<bounds::Snapshot> seen = observe(plan);
    for (Index time = 0; time < std::ssize(expected->times); ++time) {
      const auto t = static_cast<std::size_t>(time);
      if (time >= expected->decided) {
        undecided.push_back(expected->times[t]);
        continue;
      }
      all.times.push_back(expected->times[t]);
      observed.push_back(t < seen.size() ? seen[t] : bounds::Snapshot{});
    }
  }
  all.decided = std::ssize(all.times);
  all.times.insert(all.times.end(), undecided.begin(), undecided.end());
  add_oracle_row(context, item.part, params, observed, all);
}

const bounds::Subject& with_tokens(const bounds::CheckContext& context) {
  if (context.subject->tokens() == 0) throw methods::Unavailable("there are no tokens");
  return *context.subject;
}

void run_balancekv_algorithms(bounds::CheckContext& context) {
  for (const BalanceCase& item : balance_cases(with_tokens(context))) {
    check_balance_case(context, item, library_balance(context.backend));
  }
}

void run_balancekv_released(bounds::CheckContext& context) {
  for (const RepoCase& item : repo_cases(with_tokens(context)))
    check_repo_case(context, item, library_repo(context.backend));
}

}  // namespace

std::vector<BalanceCase> balance_cases(const bounds::Subject& subject) {
  const bounds::StreamPlan quarter = batch_plan(subject, 4), eighth = batch_plan(subject, 8),
                           stream = stream_plan(subject);
  const bounds::StreamPlan empty = empty_start(subject), planned = budget_of_stream(subject);
  const Index whole = std::max<Index>(2, stream.prompt);
  const BalanceSetup cut{
      .constant = "1", .stream = true, .rounds = 2, .t = 8, .eps = eps_that_cuts(subject, stream, 0.1)};
  // Greedy signs need no draws, and one seed.
  return {
      {"batch, pairs, c of the paper", {.block = 64}, quarter},
      {"batch, pairs, tight c", {.constant = "tight", .delta = 0.2, .block = 32}, eighth},
      {"batch, pairs, greedy", {.constant = "greedy"}, quarter, 1},
      {"batch, pairs, c = 1", {.constant = "1", .block = 18}, quarter},
      {"batch, halves, c of the paper", {.pairs = false, .block = batch_tokens}, quarter},
      {"batch, halves, tight c", {.constant = "tight", .pairs = false, .block = 75}, quarter},
      {"batch, halves, greedy", {.constant = "greedy", .pairs = false, .block = 50}, eighth, 1},
      {"batch, halves, c = 1", {.constant = "1", .pairs = false, .block = 33}, quarter},
      {"stream, pairs, c of the paper", {.stream = true, .rounds = 2, .t = 16}, stream},
      {"stream, pairs, tight c, t of the budget", {.constant = "tight", .stream = true}, planned},
      {"stream, pairs, c = 1, starts empty", {.constant = "1", .stream = true, .rounds = 3, .t = 4}, empty},
      {"stream, pairs, c = 1, erased buckets", cut, stream},
      {"stream, halves, c of the paper, one call", {.pairs = false, .stream = true, .rounds = 1, .t = whole}, stream},
      {"stream, halves, tight c, starts empty",
       {.constant = "tight", .delta = 0.5, .pairs = false, .stream = true, .rounds = 2, .t = 10},
       empty},
      {"stream, halves, greedy",
       {.constant = "greedy", .pairs = false, .stream = true, .rounds = 2, .t = 7},
       stream,
       1},
      {"stream, halves, c = 1, norms of 2^i",
       {.constant = "1", .pairs = false, .stream = true, .rounds = 1, .t = 12},
       empty,
       2,
       true},
  };
}

BalanceUnderTest library_balance(Backend& backend) {
  return [&backend](const bounds::Subject& subject, const bounds::StreamPlan& plan, const BalanceSetup& setup) {
    return observe_stream(subject, plan, bounds::registered_method("balancekv", setup.settings()), backend);
  };
}

void check_balance_case(bounds::CheckContext& context, const BalanceCase& item, const BalanceUnderTest& under_test) {
  const bounds::Subject subject =
      item.edge_values ? with_edge_values(*context.subject, context.backend) : *context.subject;
  add_seeds_row(
      context, item, [&](const bounds::StreamPlan& plan) { return under_test(subject, plan, item.setup); },
      [&](const bounds::StreamPlan& plan) { return balance_oracle(subject, plan, item.setup); });
}

std::vector<RepoCase> repo_cases(const bounds::Subject& subject) {
  return {
      {"weights of the release", {.block = 300}, batch_plan(subject, 4)},
      {"consistent weights", {.released_mass = false, .temp = 0.1, .gamma = 0.5, .block = 50}, batch_plan(subject, 8)},
  };
}

RepoUnderTest library_repo(Backend& backend) {
  return [&backend](const bounds::Subject& subject, const bounds::StreamPlan& plan, const RepoSetup& setup) {
    return observe_stream(subject, plan, bounds::registered_method("balancekv-repo", setup.settings()), backend);
  };
}

void check_repo_case(bounds::CheckContext& context, const RepoCase& item, const RepoUnderTest& under_test) {
  const bounds::Subject& subject = *context.subject;
  add_seeds_row(
      context, item, [&](const bounds::StreamPlan& plan) { return under_test(subject, plan, item.setup); },
      [&](const bounds::StreamPlan& plan) { return balance_repo_oracle(subject, plan, item.setup); });
}

bounds::Check balancekv_algorithms() {
  return {
      .id = "balancekv.algorithms",
      .paper = "BalanceKV, arXiv 2502.07861, Algorithms 1 to 4 and section 4",
      .statement = "the tokens and weights at every time of a stream are those of the algorithms, for the same draws",
      .run = run_balancekv_algorithms};
}

bounds::Check balancekv_released() {
  return {.id = "balancekv.released",
          .paper = "BalanceKV, arXiv 2502.07861, released code of Fig. 2",
          .statement = "the tokens and weights of `balancekv-repo` are those of the released loop, for the same draws",
          .method = "balancekv-repo",
          .run = run_balancekv_released};
}

}  // namespace kvbench::faithful
