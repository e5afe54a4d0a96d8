// SPDX-License-Identifier: Apache-2.0
#include <kvbench/methods/merging/cam_rule.hpp>

#include <algorithm>

#include <kvbench/methods/stages/prompt_steps.hpp>
#include <kvbench/methods/stages/rows.hpp>

namespace kvbench::methods {
namespace {

/// Attention that token j has received in a row: that of the query head, or of the query group.
double decisive(const CamRule& rule, const Gathered& attention, Index row, Index j) {
  const auto token = static_cast<std::size_t>(j);
  if (rule.group.per_head()) return attention[static_cast<std::size_t>(row)][token];
  double sum = 0, max = 0;
  for (const auto& of_head : attention) {
    sum += of_head[token];
    max = std::max(max, of_head[token]);
  }
  return rule.group.reduce == kernels::Reduction::max ? max : sum;  // sums and means have the same ratios
}

/// numerator / denominator in [0, 1]; 0/0 is 0, as in the released code.
double clamped_ratio(double numerator, double denominator) {
  if (numerator >= denominator) return numerator > 0 ? 1 : 0;
  return numerator / denominator;
}

/// Tokens that query t attends to in the released streaming and eval forms.
std::vector<TokenId> visible_tokens(const CamRule& rule, Index t) {
  const Index begin = std::max(rule.start, t - rule.recent);
  std::vector<TokenId> ids = token_range(0, std::min(rule.start, t + 1));
  for (Index j = begin; j <= t; ++j) ids.push_back(static_cast<TokenId>(j));
  return ids;
}

void decide(const CamRule& rule, Index i, CamPrompt& prompt) {
  for (std::size_t row = 0; row < prompt.chances.size(); ++row) {
    prompt.chances[row].push_back(merge_chance(rule, prompt.gathered, static_cast<Index>(row), i));
  }
}

void replay(const HeadPrompt& head, const CamRule& rule, CamPrompt& prompt, Backend& backend) {
  for_each_prompt_step(head, backend, [&](Index t, const StepLogits& logits) {
    const Index leaving = rule.merged_at(t);
    if (rule.form == CamForm::eval && leaving >= rule.start) decide(rule, leaving, prompt);
    const std::vector<TokenId> visible = visible_tokens(rule, t);
    for (std::size_t g = 0; g < logits.size(); ++g) {
      const std::vector<float> shares = softmax_over(logits[g], visible);
      for (std::size_t k = 0; k < visible.size(); ++k) {
        prompt.gathered[g][static_cast<std::size_t>(visible[k])] += shares[k];
      }
    }
    if (rule.form == CamForm::streaming && leaving >= rule.start) decide(rule, leaving, prompt);
  });
}

}  // namespace

double merge_chance(const CamRule& rule, const Gathered& attention, Index row, Index i) {
  const auto of = [&](Index j) { return decisive(rule, attention, row, j); };
  if (rule.form == CamForm::eval) {
    double largest = 0;
    for (Index j = 0; j < rule.start; ++j) largest = std::max(largest, of(j));
    for (Index j = i; j < i + rule.recent; ++j) largest = std::max(largest, of(j));
    return clamped_ratio(of(i), largest);
  }
  // streaming: the next m tokens; decode: the rest of the window.
  const Index count = rule.form == CamForm::streaming ? rule.receivers() : rule.after();
  if (count < 1) return 0;
  double sum = 0;
  for (Index j = i + 1; j <= i + count; ++j) sum += of(j);
  return clamped_ratio(of(i), sum / static_cast<double>(count));
}

CamPrompt cam_prompt(const HeadPrompt& head, const CamRule& rule, bool columns, Backend& backend) {
  const Index n = head.tokens();
  CamPrompt prompt;
  prompt.gathered.assign(static_cast<std::size_t>(head.group), std::vector<double>(static_cast<std::size_t>(n), 0));
  if (n == 0 || rule.form == CamForm::decode) return prompt;
  prompt.chances.resize(static_cast<std::size_t>(rule.rows(head.group)));
  if (!columns) {
    replay(head, rule, prompt, backend);
    return prompt;
  }
  const std::vector<float> sums = backend.read(head.column_sums);
  for (Index g = 0; g < head.group; ++g) {
    std::copy_n(sums.begin() + g * n, n, prompt.gathered[static_cast<std::size_t>(g)].begin());
  }
  for (Index i = rule.start; i < n - rule.recent; ++i) decide(rule, i, prompt);
  return prompt;
}

}  // namespace kvbench::methods
