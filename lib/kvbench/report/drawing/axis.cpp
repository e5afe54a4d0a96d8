// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/drawing/charts.hpp>

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include <kvbench/core/statistics.hpp>

namespace kvbench::report {
namespace {

constexpr double tick_slack = 1e-9;  // relative; keeps ticks that rounding puts just outside the range
constexpr double most_power = 307;   // of ten, on a log axis: ticks up to five times this are finite

}  // namespace

double Axis::at(double value) const {
  if (scale == Scale::linear) return (value - lo) / (hi - lo);
  if (value <= 0) return -INFINITY;
  return (std::log(value) - std::log(lo)) / (std::log(hi) - std::log(lo));  // hi / lo may overflow
}

std::vector<Tick> log_ticks(double lo, double hi) {
  const double from = std::log10(lo), to = std::log10(hi), decades = to - from;
  if (decades < 0.7) return linear_ticks(lo, hi);
  const int every = 1 + static_cast<int>(decades / 8);
  std::vector<Tick> ticks;
  for (int power = static_cast<int>(std::floor(from)); power <= to + tick_slack; ++power) {
    for (const int digit : {1, 2, 5}) {
      const double value = digit * std::pow(10., power);
      if (value < lo * (1 - tick_slack) || value > hi * (1 + tick_slack)) continue;
      const bool text = decades <= 3 || (digit == 1 && power % every == 0);
      if (text || every == 1) ticks.push_back({value, text ? fmt::format("{:g}", value) : ""});
    }
  }
  return ticks;
}

std::vector<Tick> linear_ticks(double lo, double hi, int count) {
  const double rough = (hi - lo) / count, power = std::pow(10., std::floor(std::log10(rough)));
  const double step = power * (rough / power > 5 ? 10 : rough / power > 2 ? 5 : rough / power > 1 ? 2 : 1);
  std::vector<Tick> ticks;
  const double first = std::ceil(lo / step - tick_slack);
  for (int i = 0; i <= 2 * count; ++i) {  // counted, because adding one to a huge double leaves it unchanged
    const double k = first + i;
    if (!(k * step <= hi + tick_slack * step)) break;
    const double value = k == 0 ? 0 : k * step;
    ticks.push_back({value, fmt::format("{:g}", std::abs(value) < tick_slack * step ? 0 : value)});
  }
  return ticks;
}

Extent log_extent(std::span<const double> values) {
  std::vector<double> logs;
  for (const double value : values) {
    if (value > 0 && std::isfinite(value)) logs.push_back(std::log10(value));
  }
  if (logs.empty()) return {0.1, 1};
  std::ranges::sort(logs);
  const double q1 = quantile(logs, 0.25), q3 = quantile(logs, 0.75), reach = std::max(0.5, 1.5 * (q3 - q1));
  const auto inside = [&](double v) { return v >= q1 - reach && v <= q3 + reach; };
  std::erase_if(logs, [&](double v) { return !inside(v); });
  const double margin = std::max(0.04, 0.04 * (logs.back() - logs.front()));
  const auto power = [](double exponent) { return std::pow(10., std::clamp(exponent, -most_power, most_power)); };
  const double lo = power(logs.front() - margin), hi = power(logs.back() + margin);
  return lo < hi ? Extent{lo, hi} : lo < 1 ? Extent{lo, 10 * lo} : Extent{hi / 10, hi};
}

Axis linear_axis(double lo, double hi, std::string title) {
  return {Scale::linear, lo, hi, linear_ticks(lo, hi), std::move(title)};
}

Axis log_axis(Extent extent, std::string title) {
  return {Scale::log, extent.lo, extent.hi, log_ticks(extent.lo, extent.hi), std::move(title)};
}

Axis percent_axis(double least, double most, std::string title) {
  const double margin = std::max(1.12, std::sqrt(4 * least / most));
  Axis axis = log_axis({least / margin, most * margin}, std::move(title));
  for (Tick& tick : axis.ticks) tick.label += tick.label.empty() ? "" : "%";
  return axis;
}

}  // namespace kvbench::report
