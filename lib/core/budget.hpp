// SPDX-License-Identifier: Apache-2.0
// Budgets: how many tokens per kv head a compressed cache may keep.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace kvbench {

/// A budget as a user states it: a number of tokens, or a share of the context.
class Budget {
 public:
  /// "256" tokens, or "25%" / "12.5%" of the context. Throws Error naming the text and the accepted forms; budgets must be
  /// positive, shares at most 100 %.
  static Budget parse(std::string_view text);
  static Budget tokens(std::int64_t count);

  /// Tokens for a context of `context` tokens; a share is rounded half up, and is at least 1 where the context is not empty.
  std::int64_t resolve(std::int64_t context) const;

  /// Canonical text: "256", "25%".
  const std::string& text() const { return text_; }
  bool is_share() const { return share_; }

 private:
  std::string text_;
  bool share_ = false;
  std::int64_t tokens_ = 0;
  std::int64_t numerator_ = 0, denominator_ = 1;  // exact decimal share, so that 12.5 % of 100 is not left to rounding
};

}  // namespace kvbench
