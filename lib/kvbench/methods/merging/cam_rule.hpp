// SPDX-License-Identifier: Apache-2.0
// The probabilities of `cam`: of the merge of a value in each released form, and of the merges in the prompt.
#pragma once

#include <algorithm>
#include <vector>

#include <kvbench/methods/contract/method.hpp>
#include <kvbench/methods/stages/parameters.hpp>

namespace kvbench::methods {

enum class CamForm { streaming, eval, decode };

/// One configuration at one budget.
struct CamRule {
  CamForm form = CamForm::streaming;
  GroupChoice group;
  Index start = 4;    ///< first tokens, which neither are merged nor receive a share
  Index recent = 0;   ///< tokens of the window
  Index divisor = 1;  ///< m

  Index rows(Index query_heads) const { return group.per_head() ? query_heads : 1; }
  /// Tokens after a merged one that exist when it is merged: window tokens up to the newest.
  Index after() const { return form == CamForm::decode ? recent - 2 : recent; }
  /// The tokens among them that receive a share; fewer than m where the window is shorter.
  Index receivers() const { return std::min(divisor, after()); }
  /// The token that is merged in the step of token t; below `start`: none.
  Index merged_at(Index t) const { return form == CamForm::decode ? t - recent + 2 : t - recent; }
};

/// Attention received by each token, per query head: [G][tokens].
using Gathered = std::vector<std::vector<double>>;

/// Probability that the value of token i is merged in `row`, from the attention at the time of the decision: sums over
/// steps, or for CamForm::decode that of the current step.
double merge_chance(const CamRule& rule, const Gathered& attention, Index row, Index i);

/// The state after the prompt: sums of the attention, and the merge probabilities of the tokens start .. n - recent -
/// 1, which have left the window.
struct CamPrompt {
  Gathered gathered;                         ///< [G][n]; zeros for CamForm::decode
  std::vector<std::vector<double>> chances;  ///< [rows][left]; empty for CamForm::decode
};
/// `columns`: the column sums of the prompt's full attention map replace the sums at each time; otherwise the prompt is
/// replayed.
CamPrompt cam_prompt(const HeadPrompt& head, const CamRule& rule, bool columns, Backend& backend);

}  // namespace kvbench::methods
