// SPDX-License-Identifier: Apache-2.0
#include <kvbench/core/budget.hpp>

#include <algorithm>
#include <charconv>

#include <kvbench/core/error.hpp>
#include <kvbench/core/name.hpp>

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
  const bool bare = dot == 0 && !fraction.empty();  // .25
  const std::int64_t whole = bare ? 0 : parse_digits(number.substr(0, dot), text);
  if (whole > 1'000'000'000'000) reject(text, "is too large");
  Decimal value;
  for (std::size_t i = 0; i < fraction.size(); ++i) value.denominator *= 10;
  value.numerator = whole * value.denominator;
  if (!fraction.empty()) value.numerator += parse_digits(fraction, text);
  return value;
}

/// What may stand behind the number, in lower case, and how results have it: "" for tokens, % for shares.
struct UnitName {
  std::string_view spelling, text;
  std::int64_t scale = 1;
  bool of_decimal = false;  ///< 0.25 is the share 25 % before it
};
constexpr UnitName unit_names[] = {{"", "", 1, true},
                                   {"token", ""},
                                   {"tokens", ""},
                                   {"k", "", 1024},
                                   {"%", "%"},
                                   {"percent", "%"},
                                   {"%mem", "%mem"},
                                   {"%memory", "%mem"},
                                   {"mem", "%mem", 1, true},
                                   {"memory", "%mem", 1, true},
                                   {"%fast", "%fast"},
                                   {"fast", "%fast", 1, true},
                                   {"%read", "%read"},
                                   {"%reads", "%read"},
                                   {"read", "%read", 1, true},
                                   {"reads", "%read", 1, true},
                                   {"b", "B"},
                                   {"kb", "KB", 1000},
                                   {"mb", "MB", 1000000},
                                   {"gb", "GB", 1000000000},
                                   {"kib", "KiB", 1 << 10},
                                   {"mib", "MiB", 1 << 20},
                                   {"gib", "GiB", 1 << 30}};

struct CostName {
  std::string_view text;
  CostKind cost;
};
constexpr CostName cost_names[] = {{"%mem", CostKind::memory}, {"%fast", CostKind::fast}, {"%read", CostKind::read}};

constexpr std::string_view digits = "0123456789.";

/// The unit that begins at `from`, without spaces.
const UnitName& find_unit(std::string_view text, std::size_t from) {
  std::string unit;
  for (const char c : text.substr(from)) {
    if (c != ' ') unit += lower_case(c);
  }
  const auto* found = std::ranges::find(unit_names, unit, &UnitName::spelling);
  if (found != std::end(unit_names)) return *found;
  reject(text, from == 0 ? "is not a number" : fmt::format("has an unknown unit '{}'", unit));
}

/// "12.5" for 12500 / 1000.
std::string text_of(Decimal value) {
  std::string text = fmt::format("{}.{:08}", value.numerator / value.denominator,
                                 value.numerator % value.denominator * (100'000'000 / value.denominator));
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text;
}

}  // namespace

Budget Budget::tokens(std::int64_t count) { return parse(std::to_string(count)); }

Budget Budget::parse(std::string_view given) {
  const std::string_view text = trimmed(given);
  const std::size_t behind = std::min(text.find_first_not_of(digits), text.size());
  const std::string_view number = text.substr(0, behind);
  const UnitName& unit = find_unit(text, behind);
  const bool decimal = number.find('.') != number.npos;
  Budget budget;
  if (unit.text.starts_with('%') || (unit.of_decimal && decimal)) {
    Decimal share = parse_decimal(number, text);
    if (unit.of_decimal) {
      if (!decimal || share.numerator >= share.denominator)
        reject(text, unit.text.empty() ? "is neither a whole number of tokens nor a share below 1" : "lacks a %");
      share.numerator *= 100;
    }
    if (share.numerator == 0) reject(text, "keeps nothing");
    if (share.numerator > 100 * share.denominator) reject(text, "is more than the whole context");
    budget.unit_ = Unit::share;
    budget.numerator_ = share.numerator;
    budget.denominator_ = 100 * share.denominator;
    budget.text_ = fmt::format("{}{}", text_of(share), unit.text.empty() ? "%" : unit.text);
    const auto* limit = std::ranges::find(cost_names, unit.text, &CostName::text);
    if (limit != std::end(cost_names)) budget.cost_ = limit->cost;
    return budget;
  }
  if (unit.text.empty()) {
    const std::int64_t count = parse_digits(number, text);
    if (unit.scale > 1 && count >= 1'000'000'000'000) reject(text, "is too large");
    budget.count_ = unit.scale * count;
    budget.text_ = std::to_string(budget.count_);
  } else {
    const Decimal size = parse_decimal(number, text);
    const auto bytes = static_cast<long double>(size.numerator) * static_cast<long double>(unit.scale) /
                       static_cast<long double>(size.denominator);
    if (bytes > 1e18L) reject(text, "is too large");
    budget.unit_ = Unit::bytes;
    budget.count_ = static_cast<std::int64_t>(bytes);
    budget.text_ = fmt::format("{}{}", text_of(size), unit.text);
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
