// SPDX-License-Identifier: Apache-2.0
// Numbers that a quantiser rounds to equal steps between the minimum and the maximum of their group stay within half a
// step, and the rounding of step and minimum. docs/theory/quantiser.half_step.md.
#pragma once

#include <kvbench/bounds/check/check.hpp>
#include <kvbench/faithful/checks/decoded_rows.hpp>

namespace kvbench::faithful {

/// A quantiser with equal steps: bits of a code and the numbers of a group, of consecutive channels of a token, or of
/// consecutive tokens of a channel (keys of KIVI).
struct StepFormat {
  QuantiserSetting setting;
  int bits = 4;
  Index group = 32;
  bool keys_by_tokens = false;

  bool by_tokens(Side side) const { return keys_by_tokens && side == Side::keys; }
};

/// `int` at every number of bits, q4_1, q5_1, kivi4 and kivi2.
std::vector<StepFormat> step_formats();

/// Decodes the rows of one side.
using StepDecoder =
    std::function<std::vector<float>(const StepFormat&, Side, const std::vector<float>& rows, Backend&)>;

/// Calls f(the places of the numbers of a group in rows [n, d]) for each group.
void for_each_step_group(const StepFormat& format, Side side, Index n, Index d,
                         const std::function<void(const std::vector<std::size_t>&)>& f);

void check_half_step(bounds::CheckContext& context, const StepDecoder& decoder);

bounds::Check quantiser_half_step();

}  // namespace kvbench::faithful
