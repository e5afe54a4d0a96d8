// SPDX-License-Identifier: Apache-2.0
#include <kvbench/eval/answers.hpp>

#include <algorithm>
#include <cmath>
#include <set>

#include <fmt/ranges.h>

#include <kvbench/core/error.hpp>
#include <kvbench/eval/scores.hpp>
#include <kvbench/eval/tasks.hpp>
#include <kvbench/trace/sha256.hpp>

namespace kvbench::eval {

std::string Generation::text() const {
  if (tokens == 0) return "";
  return temperature == 0 ? fmt::format("{} greedy", tokens)
                          : fmt::format("{} at {} seed {}", tokens, temperature, seed);
}

void check(const Generation& generation) {
  // The first token follows from the context alone, so that an answer of one token says nothing about a method.
  if (generation.tokens != 0 && (generation.tokens < 2 || generation.tokens > most_scored_tokens))
    throw Error("generate is {}; it is from 2 to {}", generation.tokens, most_scored_tokens);
  if (!(generation.temperature >= 0 && generation.temperature <= 100))
    throw Error("temperature is {}; it is from 0 to 100, and 0 is greedy", generation.temperature);
  if (generation.temperature == 0 && generation.seed != 0)
    throw Error("the seed of samples is {}, and has no effect on greedy answers; give a temperature above 0",
                generation.seed);
  if (generation.tokens == 0 && generation.temperature != 0)
    throw Error("a temperature has no effect if nothing is generated; say of how many tokens answers are (generate)");
}

NextToken::NextToken(const Generation& generation, std::span<const int> context)
    : generation_(generation), context_(fmt::format("{}", fmt::join(context, " "))) {}

double NextToken::uniform(Index position) const {
  const std::string digest =
      trace::Sha256().add(fmt::format("{} {}\n{}\n", generation_.seed, position, context_)).hex();
  return std::ldexp(static_cast<double>(std::stoull(digest.substr(0, 13), nullptr, 16)), -52);
}

int NextToken::operator()(std::span<const float> logits, Index position) const {
  const auto top = static_cast<std::size_t>(most_probable(logits));
  if (generation_.temperature == 0) return static_cast<int>(top);
  std::vector<double> cumulative;
  double sum = 0;
  for (const float logit : logits)
    cumulative.push_back(sum += std::exp((static_cast<double>(logit) - logits[top]) / generation_.temperature));
  // Strictly above, so that a token of probability 0 is never drawn; rounding may take the product up to the sum.
  const auto found = std::ranges::upper_bound(cumulative, std::min(uniform(position) * sum, std::nextafter(sum, 0.0)));
  return static_cast<int>(found - cumulative.begin());
}

std::optional<Index> first_difference(std::span<const int> a, std::span<const int> b) {
  const auto [of_a, of_b] = std::ranges::mismatch(a, b);
  if (of_a == a.end() && of_b == b.end()) return std::nullopt;
  return of_a - a.begin();
}

double share_alike(std::span<const int> a, std::span<const int> b, Index count) {
  const Index both = std::min({std::ssize(a), std::ssize(b), count});
  const Index all = std::min(std::max(std::ssize(a), std::ssize(b)), count);
  Index same = 0;
  for (Index i = 0; i < both; ++i) same += a[static_cast<std::size_t>(i)] == b[static_cast<std::size_t>(i)];
  return static_cast<double>(same) / static_cast<double>(all);
}

double repetition(std::span<const int> answer) {
  constexpr std::size_t n = 4;
  if (answer.size() < n) return NAN;
  std::set<std::vector<int>> distinct;
  for (std::size_t i = 0; i + n <= answer.size(); ++i) {
    const auto gram = answer.subspan(i, n);
    distinct.emplace(gram.begin(), gram.end());
  }
  return 1 - static_cast<double>(distinct.size()) / static_cast<double>(answer.size() - n + 1);
}

}  // namespace kvbench::eval
