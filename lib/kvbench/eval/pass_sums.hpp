// SPDX-License-Identifier: Apache-2.0
// The scores of one configuration on one document, summed over what its spans count.
#pragma once

#include <vector>

#include <kvbench/eval/results.hpp>

namespace kvbench::eval {

/// Sums over predicted tokens, key tokens and answers.
struct PassSums {
  double tokens = 0, kl = 0, same_top = 0, nll_full = 0, nll = 0, nll_short = 0;
  double key_tokens = 0, key_nll_full = 0, key_nll = 0;
  double answers = 0, right_full = 0, right_short = 0, right = 0, harmful = 0, beneficial = 0;
};
/// Of a pass that is ok. Throws Error where it has other tokens than the document.
PassSums sums_of(const TaskInfo& task, const EvalDocument& document, const PassResult& pass);

/// Whether each answer is right with the full cache, and with the configuration: every token of it is the most probable
/// one after the true tokens before it, so greedy decoding gives the answer.
struct AnswerMatch {
  bool full = false, compressed = false;
};
std::vector<AnswerMatch> matches_of(const EvalDocument& document, const PassResult& pass);

/// KL of the counted tokens.
std::vector<double> divergences_of(const EvalDocument& document, const PassResult& pass);

}  // namespace kvbench::eval
