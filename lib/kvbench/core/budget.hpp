// SPDX-License-Identifier: Apache-2.0
// Budgets: the number of tokens that a compressed cache may keep per kv head.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace kvbench {

/// A budget as given by a user: a number of tokens, a share of the context, or bytes of keys and values.
class Budget {
 public:
  /// "256" tokens, "25%" / "12.5%" of the context, or "512KiB" / "1.5MB" per kv head (B, KB, MB, GB, KiB, MiB, GiB). Throws
  /// Error naming the text and the accepted forms; budgets must be positive, shares at most 100 %.
  static Budget parse(std::string_view text);
  static Budget tokens(std::int64_t count);

  /// Tokens for a context of `context` tokens, whose key and value take `token_bytes` together; a share is rounded half up, and
  /// is at least 1 where the context is not empty; bytes are rounded down, to 0 where no token fits.
  std::int64_t resolve(std::int64_t context, std::int64_t token_bytes) const;

  /// As given: "256", "25%", "512KiB".
  const std::string& text() const { return text_; }
  bool is_share() const { return unit_ == Unit::share; }
  bool is_bytes() const { return unit_ == Unit::bytes; }

 private:
  enum class Unit { tokens, share, bytes };
  std::string text_;
  Unit unit_ = Unit::tokens;
  std::int64_t count_ = 0;                        // of tokens or bytes
  std::int64_t numerator_ = 0, denominator_ = 1;  // exact decimal share, so that 12.5 % of 100 is exact
};

}  // namespace kvbench
