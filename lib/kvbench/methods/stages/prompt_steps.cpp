// SPDX-License-Identifier: Apache-2.0
#include <kvbench/methods/stages/prompt_steps.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include <kvbench/methods/stages/rows.hpp>

namespace kvbench::methods {
namespace {

constexpr Index block_logits = Index{1} << 24;  // held at a time: 64 MiB

/// Logits [G*m, end] of the queries begin .. end - 1 for the tokens before `end`; -inf outside the causal mask.
std::vector<float> logits_of(const HeadPrompt& head, Index begin, Index end, Backend& backend) {
  const Index queries = end - begin, rows = head.group * queries;
  std::vector<std::int32_t> picked;
  for (Index g = 0; g < head.group; ++g) {
    const std::vector<TokenId> of_head = token_range(g * std::ssize(head.observed_positions) + begin, queries);
    picked.insert(picked.end(), of_head.begin(), of_head.end());
  }
  const auto observed = gathered(head.observed, std::move(picked), backend);
  const auto scores = backend.allocate<float>(rows, end);
  backend.run(kernels::ExactAttention<Buffer>{
      .queries = observed,
      .keys = head.keys.slice(0, end),
      .values = head.values.slice(0, end),
      .first = backend.adopt(std::vector<std::int32_t>(static_cast<std::size_t>(queries), 0), queries),
      .last = backend.adopt(token_range(begin + 1, queries), queries),
      .scale = head.scale,
      .out = backend.allocate<float>(rows, head.values.cols()),
      .max = backend.allocate<float>(rows),
      .log_sum_exp = backend.allocate<float>(rows),
      .scores = scores,
  });
  return backend.read(scores);
}

}  // namespace

bool has_all_queries(const ContextData& data) {
  const auto n = static_cast<std::size_t>(data.tokens);
  if (n == 0) return true;
  // Positions increase, so n of them from 0 to n - 1 leave no gap.
  const auto& positions = data.observed;
  return positions.size() >= n && positions.front() == 0 && positions[n - 1] == static_cast<std::int32_t>(n) - 1;
}

std::string observed_share(const ContextData& data) {
  const auto inside =
      std::ranges::count_if(data.observed, [&](std::int32_t position) { return position < data.tokens; });
  return fmt::format("there are {} of {}", inside, data.tokens);
}

void for_each_prompt_step(const HeadPrompt& head, Backend& backend,
                          const std::function<void(Index t, const StepLogits& logits)>& step) {
  const Index n = head.tokens();
  for (Index begin = 0; begin < n;) {
    const Index end = std::min(n, begin + std::max<Index>(1, block_logits / (head.group * n)));
    const std::vector<float> logits = logits_of(head, begin, end, backend);
    StepLogits of_step(static_cast<std::size_t>(head.group));
    for (Index t = begin; t < end; ++t) {
      for (Index g = 0; g < head.group; ++g) {
        const auto row = static_cast<std::size_t>((g * (end - begin) + t - begin) * end);
        of_step[static_cast<std::size_t>(g)] = std::span(logits).subspan(row, static_cast<std::size_t>(t + 1));
      }
      step(t, of_step);
    }
    begin = end;
  }
}

std::vector<float> softmax_over(std::span<const float> logits, std::span<const TokenId> ids) {
  double max = -std::numeric_limits<double>::infinity(), sum = 0;
  for (const TokenId id : ids) max = std::max<double>(max, logits[static_cast<std::size_t>(id)]);
  std::vector<double> mass;
  mass.reserve(ids.size());
  for (const TokenId id : ids) sum += mass.emplace_back(std::exp(logits[static_cast<std::size_t>(id)] - max));
  std::vector<float> shares(ids.size());
  std::ranges::transform(mass, shares.begin(), [sum](double x) { return static_cast<float>(x / sum); });
  return shares;
}

}  // namespace kvbench::methods
