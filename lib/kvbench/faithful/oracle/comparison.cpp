// SPDX-License-Identifier: Apache-2.0
#include <kvbench/faithful/oracle/comparison.hpp>

#include <algorithm>
#include <cmath>
#include <optional>

#include <fmt/format.h>

namespace kvbench::faithful {
namespace {

constexpr double weight_tolerance = 1e-5, row_tolerance = 1e-4;

bool near(double a, double b) { return std::abs(a - b) <= weight_tolerance * std::max(std::abs(a), std::abs(b)); }

/// A row is absent where it is that of the token.
bool near(const std::vector<double>& a, const std::vector<double>& b, std::span<const float> of_token) {
  if (a.empty() && b.empty()) return true;
  double away = 0, size = 0;
  for (std::size_t c = 0; c < of_token.size(); ++c) {
    const double observed = a.empty() ? of_token[c] : a[c], expected = b.empty() ? of_token[c] : b[c];
    away += std::pow(observed - expected, 2);
    size += std::pow(expected, 2);
  }
  return away <= row_tolerance * row_tolerance * size;
}

std::string describe(const bounds::HeldEntry& entry) {
  return fmt::format("token {} with weights {:.6g} and {:.6g}", entry.id, entry.num, entry.den);
}

/// The first difference in words; absent where there is none.
std::optional<std::string> difference(const bounds::Snapshot& observed, const bounds::Snapshot& expected,
                                      const bounds::Subject& subject) {
  const auto at = [&](const bounds::Snapshot& snapshot, std::size_t i) {
    return i < snapshot.held.size() ? describe(snapshot.held[i]) : "nothing";
  };
  for (std::size_t i = 0; i < std::max(observed.held.size(), expected.held.size()); ++i) {
    const bool both = i < observed.held.size() && i < expected.held.size();
    if (both) {
      const bounds::HeldEntry &a = observed.held[i], &b = expected.held[i];
      const bool same = a.id == b.id && near(a.num, b.num) && near(a.den, b.den);
      if (same && near(a.key, b.key, subject.key(b.id)) && near(a.value, b.value, subject.value(b.id))) continue;
      if (same) return fmt::format("another key or value at {}", describe(a));
    }
    return fmt::format("{} in place of {}", at(observed, i), at(expected, i));
  }
  return std::nullopt;
}

}  // namespace

void add_oracle_row(bounds::CheckContext& context, const std::string& part, const std::string& params,
                    std::span<const bounds::Snapshot> observed, const OracleRun& expected) {
  if (expected.decided == 0) {
    context.not_tested(bounds::CheckKind::exact, {part, params},
                       "the first decision is closer than the rounding of fp32");
    return;
  }
  std::int64_t differences = 0;
  std::string first;
  for (Index time = 0; time < expected.decided; ++time) {
    const auto t = static_cast<std::size_t>(time);
    const auto found =
        t < observed.size() ? difference(observed[t], expected.times[t], *context.subject) : "no entries";
    if (!found) continue;
    if (differences++ == 0)
      first = fmt::format("; first difference after {} tokens: {}", expected.times[t].tokens, *found);
  }
  context.exact(
      {part, params}, differences, expected.decided,
      fmt::format(
          "ids and weights at {} times of the stream{}{}", expected.decided,
          expected.decided < std::ssize(expected.times)
              ? fmt::format("; not compared at {} later ones, after a decision closer than the rounding of fp32",
                            std::ssize(expected.times) - expected.decided)
              : "",
          first));
}

}  // namespace kvbench::faithful
