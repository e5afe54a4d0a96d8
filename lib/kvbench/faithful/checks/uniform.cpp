// SPDX-License-Identifier: Apache-2.0
// The uniform baselines of BalanceKV (arXiv 2502.07861, Fig. 2): after the prompt and after each decoded token they
// hold the tokens and the weights that their rules give from the same draws. docs/theory/uniform.samples.md.
#include <kvbench/faithful/checks/checks.hpp>

#include <algorithm>

#include <fmt/format.h>

namespace kvbench::faithful {
namespace {

constexpr Index most_sampled = 1024;  // tokens of a stream
constexpr Index uniform_decoded = 48;

struct UniformCase {
  std::string part;
  bounds::StreamPlan plan;
  UniformRepoSizes sizes = {};  ///< of uniform-repo
};

/// Streams of a part of the budget, of a whole prompt, of one token, and without a prompt.
std::vector<UniformCase> uniform_cases(const bounds::Subject& subject) {
  if (subject.tokens() == 0) throw methods::Unavailable("the subject has no tokens");
  const Index n = std::min(subject.tokens(), most_sampled), appended = std::min(uniform_decoded, n - 1),
              prompt = n - appended;
  const auto plan = [&](Index budget, std::uint32_t seed) {
    return bounds::StreamPlan{
        .prompt = prompt, .appended = appended, .budget = std::max<Index>(1, budget), .seed = seed};
  };
  return {{.part = "a quarter of the prompt", .plan = plan(prompt / 4, 0)},
          {.part = "a quarter of the prompt", .plan = plan(prompt / 4, 1)},
          {.part = "a fifth of an odd prompt",
           .plan = {std::max<Index>(1, prompt - 1) | 1, 0, std::max<Index>(1, n / 5), 2}},
          {.part = "one token", .plan = plan(1, 3)},
          {.part = "all but one token", .plan = plan(prompt - 1, 4)},
          {.part = "the whole prompt", .plan = plan(prompt, 5)},
          {.part = "no prompt", .plan = {.prompt = 0, .appended = appended, .budget = 2, .seed = 6}}};
}

std::vector<UniformCase> uniform_repo_cases(const bounds::Subject& subject) {
  std::vector<UniformCase> cases = uniform_cases(subject);
  UniformCase blocks = cases.front();
  blocks.part = "a quarter of the prompt in blocks of 16";
  blocks.sizes = {.block = 16};
  UniformCase rounds = cases[1];
  rounds.part = "4 rounds in blocks of 7";
  rounds.sizes = {.block = 7, .rounds = 4};
  cases.push_back(blocks);
  cases.push_back(rounds);
  return cases;
}

std::vector<methods::Assignment> uniform_repo_settings(const UniformRepoSizes& sizes) {
  return {{"block", fmt::format("{}", sizes.block)}, {"rounds", fmt::format("{}", sizes.rounds)}};
}

void run_uniform_samples(bounds::CheckContext& context) {
  const auto observe = [&](const bounds::StreamPlan& plan, const bounds::MethodUnderTest& method) {
    return observe_stream(*context.subject, plan, method, context.backend);
  };
  check_uniform(context,
                [&](const bounds::StreamPlan& plan) { return observe(plan, bounds::registered_method("uniform")); });
  check_uniform_repo(context, [&](const bounds::StreamPlan& plan, const UniformRepoSizes& sizes) {
    return observe(plan, bounds::registered_method("uniform-repo", uniform_repo_settings(sizes)));
  });
}

}  // namespace

void check_uniform(bounds::CheckContext& context, const UniformStream& stream) {
  for (const UniformCase& run : uniform_cases(*context.subject)) {
    context.poll();
    add_oracle_row(context, "uniform: " + run.part, run.plan.text(), stream(run.plan),
                   uniform_oracle(*context.subject, run.plan));
  }
}

void check_uniform_repo(bounds::CheckContext& context, const UniformRepoStream& stream) {
  for (const UniformCase& run : uniform_repo_cases(*context.subject)) {
    context.poll();
    add_oracle_row(context, "uniform-repo: " + run.part,
                   fmt::format("{};block={};rounds={}", run.plan.text(), run.sizes.block, run.sizes.rounds),
                   stream(run.plan, run.sizes), uniform_repo_oracle(*context.subject, run.plan, run.sizes));
  }
}

bounds::Check uniform_samples() {
  return {.id = "uniform.samples",
          .paper = "BalanceKV, arXiv 2502.07861, baseline of Fig. 2",
          .statement =
              "at every time of a stream the baselines hold the tokens and weights of their rules, from the same draws",
          .run = run_uniform_samples};
}

}  // namespace kvbench::faithful
