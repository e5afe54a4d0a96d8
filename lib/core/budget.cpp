// SPDX-License-Identifier: Apache-2.0
#include <kvbench/core/budget.hpp>

#include <charconv>

#include <kvbench/core/error.hpp>

namespace kvbench {
namespace {

[[noreturn]] void reject(std::string_view text, std::string_view why) {
  throw Error("budget '{}' {}; write a number of tokens such as 256, or a share of the context such as 25% or 12.5%", text,
              why);
}

std::int64_t parse_digits(std::string_view digits, std::string_view text) {
  std::int64_t value = 0;
  const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (digits.empty() || code != std::errc{} || end != digits.data() + digits.size() || value < 0) {
    reject(text, "is not a number");
  }
  return value;
}

}  // namespace

Budget Budget::tokens(std::int64_t count) { return parse(std::to_string(count)); }

Budget Budget::parse(std::string_view text) {
  Budget budget;
  budget.text_ = std::string(text);
  if (text.empty() || text.back() != '%') {
    budget.tokens_ = parse_digits(text, text);
    if (budget.tokens_ == 0) reject(text, "keeps nothing");
    return budget;
  }
  budget.share_ = true;
  const std::string_view number = text.substr(0, text.size() - 1);
  const std::size_t dot = number.find('.');
  const std::string_view fraction = dot == std::string_view::npos ? "" : number.substr(dot + 1);
  if (fraction.size() > 6) reject(text, "has more than six decimals");
  budget.denominator_ = 100;
  for (std::size_t i = 0; i < fraction.size(); ++i) budget.denominator_ *= 10;
  budget.numerator_ = parse_digits(number.substr(0, dot), text) * (budget.denominator_ / 100);
  if (!fraction.empty()) budget.numerator_ += parse_digits(fraction, text);
  if (budget.numerator_ == 0) reject(text, "keeps nothing");
  if (budget.numerator_ > budget.denominator_) reject(text, "is more than the whole context");
  return budget;
}

std::int64_t Budget::resolve(std::int64_t context) const {
  if (!share_) return tokens_;
  const std::int64_t rounded = (2 * numerator_ * context + denominator_) / (2 * denominator_);
  return rounded > 0 || context == 0 ? rounded : 1;
}

}  // namespace kvbench
