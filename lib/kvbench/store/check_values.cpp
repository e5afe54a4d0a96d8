// SPDX-License-Identifier: Apache-2.0
#include <kvbench/store/check_values.hpp>

#include <cmath>

#include <kvbench/core/utf8.hpp>

namespace kvbench::store {
namespace {

constexpr double rounding = 1e-4;  // of a share that is summed in fp32

template <class F>
void check_characters(std::string_view text, F allowed) {
  for (std::size_t length = 0; !text.empty(); text.remove_prefix(length)) {
    length = utf8_character(text);
    require(length > 0, "a text is not UTF-8");
    require(allowed(text.substr(0, length)), "a text has a control character");
  }
}

}  // namespace

void check_name(std::string_view name) {
  check_characters(name, [](std::string_view character) { return !is_control(character); });
}

void check_message(std::string_view text) {
  check_characters(text, [](std::string_view character) { return !is_control(character) || character == "\n"; });
}

void check_amount(double amount) { require(std::isfinite(amount) && amount >= 0, "a cost cannot be right"); }

void check_bytes(const replay::Bytes& bytes) {
  for (const double amount : {bytes.kv, bytes.meta, bytes.fast, bytes.slow, bytes.read, bytes.full})
    check_amount(amount);
}

void check_metric(replay::Metric metric, double value) {
  const replay::Limits& limits = replay::info_of(metric).limits;
  require(std::isnan(value) || (value >= limits.lo - rounding && value <= limits.hi + rounding),
          "a metric is outside of its limits");
}

}  // namespace kvbench::store
