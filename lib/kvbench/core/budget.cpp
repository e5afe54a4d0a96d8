// SPDX-License-Identifier: Apache-2.0
#include <kvbench/core/budget.hpp>

#include <algorithm>
#include <charconv>

#include <kvbench/core/error.hpp>

namespace kvbench {
namespace {

[[noreturn]] void reject(std::string_view text, std::string_view why) {
  throw Error(
      "budget '{}' {}; write a number of tokens such as 256 or 1k (1024), a share of the context such as 25%, 12.5% or "
      "0.25, bytes per kv head such as 512KiB, or a limit of the memory, the fast memory or the reads relative to the "
      "full cache, such "
      "as 25%mem, 25%fast or 25%read",
      text, why);
}

std::int64_t parse_digits(std::string_view digits, std::string_view text) {
  std::int64_t value = 0;
  const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (digits.empty() || code != std::errc{} || end != digits.data() + digits.size() || value < 0) {
    reject(text, "is not a number");
  }
  return value;
}

/// A decimal number as an exact fraction.
struct Decimal {
  std::int64_t numerator = 0, denominator = 1;
};

Decimal parse_decimal(std::string_view number, std::string_view text) {
  const std::size_t dot = number.find('.');
  const std::string_view fraction = dot == std::string_view::npos ? "" : number.substr(dot + 1);
  if (fraction.size() > 6) reject(text, "has more than six decimals");
  const std::int64_t whole = parse_digits(number.substr(0, dot), text);
  if (whole > 1'000'000'000'000) reject(text, "is too large");
  Decimal value;
  for (std::size_t i = 0; i < fraction.size(); ++i) value.denominator *= 10;
  value.numerator = whole * value.denominator;
  if (!fraction.empty()) value.numerator += parse_digits(fraction, text);
  return value;
}

struct ByteUnit {
  std::string_view name;
  std::int64_t bytes;
};
constexpr ByteUnit byte_units[] = {
    {"KiB", 1 << 10}, {"MiB", 1 << 20},   {"GiB", 1 << 30}, {"KB", 1000},
    {"MB", 1000000},  {"GB", 1000000000}, {"B", 1}};  // longest first, because all of them end in B

struct CostName {
  std::string_view suffix;
  CostKind cost;
};
constexpr CostName cost_names[] = {{"%mem", CostKind::memory}, {"%fast", CostKind::fast}, {"%read", CostKind::read}};

/// "25%" for "0.25", "1024" for "1k"; other texts as they are.
std::string in_units(std::string_view text) {
  constexpr std::string_view digits = "0123456789.";
  if (text.ends_with('k') || text.ends_with('K')) {
    const std::int64_t count = parse_digits(text.substr(0, text.size() - 1), text);
    if (count >= 1'000'000'000'000) reject(text, "is too large");
    return std::to_string(1024 * count);
  }
  if (text.find('.') == text.npos || text.find_first_not_of(digits) != text.npos) return std::string(text);
  const Decimal share = parse_decimal(text, text);
  if (share.numerator >= share.denominator) reject(text, "is neither a whole number of tokens nor a share below 1");
  std::string percent = fmt::format("{}.{:04}", 100 * share.numerator / share.denominator,
                                    100 * share.numerator % share.denominator * 10'000 / share.denominator);
  percent.erase(percent.find_last_not_of('0') + 1);
  if (percent.ends_with('.')) percent.pop_back();
  return percent + "%";
}

}  // namespace

Budget Budget::tokens(std::int64_t count) { return parse(std::to_string(count)); }

Budget Budget::parse(std::string_view given) {
  Budget budget;
  budget.text_ = in_units(given);
  const std::string_view text = budget.text_;
  const auto* limit =
      std::ranges::find_if(cost_names, [&](const CostName& name) { return text.ends_with(name.suffix); });
  if (limit != std::end(cost_names)) budget.cost_ = limit->cost;
  if (text.ends_with('%') || budget.cost_) {
    const Decimal share = parse_decimal(text.substr(0, text.rfind('%')), text);
    budget.unit_ = Unit::share;
    budget.numerator_ = share.numerator;
    budget.denominator_ = 100 * share.denominator;
    if (budget.numerator_ == 0) reject(text, "keeps nothing");
    if (budget.numerator_ > budget.denominator_) reject(text, "is more than the whole context");
    return budget;
  }
  const auto* unit = std::ranges::find_if(byte_units, [&](const ByteUnit& u) { return text.ends_with(u.name); });
  if (unit != std::end(byte_units)) {
    const Decimal number = parse_decimal(text.substr(0, text.size() - unit->name.size()), text);
    budget.unit_ = Unit::bytes;
    const auto bytes = static_cast<long double>(number.numerator) * static_cast<long double>(unit->bytes) /
                       static_cast<long double>(number.denominator);
    if (bytes > 1e18L) reject(text, "is too large");
    budget.count_ = static_cast<std::int64_t>(bytes);
  } else {
    budget.count_ = parse_digits(text, text);
  }
  if (budget.count_ == 0) reject(text, "keeps nothing");
  return budget;
}

std::optional<Budget> Budget::find(std::string_view text) {
  try {
    return parse(text);
  } catch (const Error&) {
    return std::nullopt;
  }
}

std::int64_t Budget::resolve(std::int64_t context, std::int64_t token_bytes) const {
  if (unit_ == Unit::tokens) return count_;
  if (unit_ == Unit::bytes) return count_ / token_bytes;
  const std::int64_t rounded = (2 * numerator_ * context + denominator_) / (2 * denominator_);
  return rounded > 0 || context == 0 ? rounded : 1;
}

}  // namespace kvbench
