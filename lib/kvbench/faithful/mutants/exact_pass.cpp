// SPDX-License-Identifier: Apache-2.0
#include <kvbench/faithful/mutants/mutant.hpp>

#include <algorithm>

#include <kvbench/faithful/checks/checks.hpp>

namespace kvbench::faithful {
namespace {

/// The pass sees another head than the recomputation.
Mutant exact_mutant(const std::string& id, std::string fault, const std::function<void(replay::Head&)>& change) {
  return {.id = "exact." + id,
          .method = "exact",
          .fault = std::move(fault),
          .place = "softmax(scale q K^T) V over the tokens up to the query",
          .run = [change](bounds::CheckContext& context) {
            bounds::CheckContext exact = context.as("exact.noise_floor");
            check_exact_pass(exact, [&](const replay::Head& head, Backend& backend) {
              replay::Head changed = head;
              change(changed);
              return replayed_exact_pass(changed, backend);
            });
          }};
}

/// Moves the end of the visible tokens and leaves the beginning, unless the end would leave the context.
void move_end(replay::Head& head, std::int32_t by) {
  const auto last = static_cast<std::int32_t>(head.num_tokens()) - 1;
  for (std::int32_t& position : head.positions) position = std::clamp(position + by, 0, last);
  if (head.window > 0) head.window += by;
}

}  // namespace

std::vector<Mutant> exact_mutants() {
  return {
      exact_mutant("scale", "logits are 0.1 % too large", [](replay::Head& head) { head.tokens.scale *= 1.001f; }),
      exact_mutant("sees-next", "queries see the next token", [](replay::Head& head) { move_end(head, 1); }),
      exact_mutant("not-itself", "queries do not see their own token", [](replay::Head& head) { move_end(head, -1); }),
      exact_mutant("window", "the sliding window is one token too long",
                   [](replay::Head& head) { head.window += head.window > 0; }),
  };
}

}  // namespace kvbench::faithful
