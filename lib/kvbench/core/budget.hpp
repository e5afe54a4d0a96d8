// SPDX-License-Identifier: Apache-2.0
// Budgets: what a compressed cache may keep, in tokens per kv head or as a limit of its cost.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <fmt/format.h>

namespace kvbench {

/// A cost of a compressed cache, as a share of the same cost of the exact cache of the same tokens.
enum class CostKind {
  memory,  ///< everything that the method holds: keys, values and metadata in both tiers, decoded tokens
  fast,    ///< the part of it in the memory of the device that computes
  read     ///< bytes that are read per query
};

/// A budget as given by a user: a number of tokens, a share of the context, bytes of keys and values, or a limit of a
/// cost.
class Budget {
 public:
  Budget() = default;  ///< none, with an empty text

  /// "256" or "1k" (1024) tokens, "25%" / "12.5%" / "0.25" of the context, or "512KiB" / "1.5MB" per kv head (B, KB,
  /// MB, GB, KiB, MiB, GiB). Units are read in any case, behind spaces and in other words ("25 % memory", "0.25mem").
  /// Throws Error naming the text and the accepted forms; budgets must be positive, shares at most 100 %. "25%mem",
  /// "25%fast" and "25%read" limit a cost; the number of tokens then depends on the method.
  static Budget parse(std::string_view text);
  /// parse(), or none where it throws Error.
  static std::optional<Budget> find(std::string_view text);
  static Budget tokens(std::int64_t count);

  /// Tokens for a context of `context` tokens, whose key and value take `token_bytes` together; a share is rounded half
  /// up, and is at least 1 where the context is not empty; bytes are rounded down, to 0 where no token fits. For a
  /// limit of a cost: the tokens of the same share of the context.
  std::int64_t resolve(std::int64_t context, std::int64_t token_bytes) const;

  /// One text for all spellings of a number with its unit: "1024" for "1k", "25%" for "0.25" and "25.0 %".
  const std::string& text() const { return text_; }
  bool is_share() const { return unit_ == Unit::share; }  ///< of the context, or of the cost that the budget limits
  bool is_bytes() const { return unit_ == Unit::bytes; }
  std::optional<CostKind> cost() const { return cost_; }  ///< the cost that the budget limits, if it limits one
  /// The limit of the cost, or the share of the context.
  double share() const { return static_cast<double>(numerator_) / static_cast<double>(denominator_); }

  /// By the text: 25% and 25.0% are two budgets.
  friend bool operator==(const Budget& a, const Budget& b) { return a.text_ == b.text_; }
  friend auto operator<=>(const Budget& a, const Budget& b) { return a.text_ <=> b.text_; }

 private:
  enum class Unit { tokens, share, bytes };
  std::string text_;
  Unit unit_ = Unit::tokens;
  std::optional<CostKind> cost_;
  std::int64_t count_ = 0;                        // of tokens or bytes
  std::int64_t numerator_ = 0, denominator_ = 1;  // exact decimal share, so that 12.5 % of 100 is exact
};

}  // namespace kvbench

/// Prints text().
template <>
struct fmt::formatter<kvbench::Budget> : fmt::formatter<std::string_view> {
  template <class Context>
  auto format(const kvbench::Budget& budget, Context& context) const {
    return fmt::formatter<std::string_view>::format(budget.text(), context);
  }
};
