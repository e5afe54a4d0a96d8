// SPDX-License-Identifier: Apache-2.0
#include <kvbench/bounds/trials/rates.hpp>

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include <kvbench/core/statistics.hpp>

namespace kvbench::bounds {
namespace {

constexpr std::size_t rate_groups = 8;

double log_root_mean_square(std::span<const double> errors) {
  double squares = 0;
  for (const double x : errors) squares += x * x;
  return std::log(squares / static_cast<double>(errors.size())) / 2;
}

}  // namespace

QuantileEstimate estimate_quantile(std::vector<double> numbers, double q) {
  QuantileEstimate estimate{.value = quantile(numbers, q), .interval = {0, INFINITY}};
  std::ranges::sort(numbers);
  const auto n = static_cast<std::int64_t>(numbers.size());
  for (std::int64_t rank = 1; rank <= n; ++rank) {
    if (1 - binomial_tail(rank, n, q) <= 0.025) estimate.interval.lo = numbers[static_cast<std::size_t>(rank - 1)];
    if (binomial_tail(rank, n, q) <= 0.025) {
      estimate.interval.hi = numbers[static_cast<std::size_t>(rank - 1)];
      break;
    }
  }
  return estimate;
}

void add_constant(CheckContext& context, const std::string& params, std::span<const BoundShape> queries, double delta,
                  double literal, const std::string& shape) {
  const Statement statement{std::string(constant_part), params};
  QuantileEstimate worst{.value = -1};
  Index used = 0;
  for (const BoundShape& query : queries) {
    if (!(query.shape > 0) || !std::isfinite(query.shape) || query.errors.empty()) continue;
    std::vector<double> ratios;
    for (const double error : query.errors) ratios.push_back(error / query.shape);
    const QuantileEstimate estimate = estimate_quantile(std::move(ratios), 1 - delta);
    ++used;
    if (estimate.value > worst.value) worst = estimate;
  }
  if (used == 0) {
    context.not_tested(CheckKind::data, statement, "the bound is 0 or infinite for every query").literal = literal;
    return;
  }
  context.data(
      statement, {.measured = worst.value, .literal = literal},
      fmt::format(
          "{:.4g}, 95 % [{:.4g}, {:.4g}]: the {:.4g} quantile over {} seeds of error / ({}), worst of {} queries",
          worst.value, worst.interval.lo, worst.interval.hi, 1 - delta, queries.front().errors.size(), shape, used));
}

void add_constant(CheckContext& context, const std::string& params, std::span<const QueryTrials> queries, double delta,
                  double constant, const std::string& shape) {
  std::vector<BoundShape> shapes;
  for (const QueryTrials& query : queries)
    shapes.push_back({.shape = query.literal / constant, .errors = query.errors});
  add_constant(context, params, shapes, delta, constant, shape);
}

void name_largest_constants(std::span<CheckRow> rows) {
  std::map<std::string, std::vector<CheckRow*>> groups;
  for (CheckRow& row : rows) {
    if (row.part == constant_part && !std::isnan(row.measured)) groups[row.check].push_back(&row);
  }
  for (const auto& group : groups) {
    const std::vector<CheckRow*>& same = group.second;
    CheckRow& largest = **std::ranges::max_element(same, {}, [](const CheckRow* row) { return row->measured; });
    if (same.size() > 1) largest.text += fmt::format("; the largest of {} subjects and sizes", same.size());
  }
}

Rate error_rate(std::span<const double> sizes, std::span<const std::vector<double>> errors) {
  std::vector<double> slopes;
  const std::size_t seeds = errors.empty() ? 0 : errors.front().size(),
                    group = std::max<std::size_t>(1, seeds / rate_groups);
  for (std::size_t first = 0; first + group <= seeds; first += group) {
    std::vector<double> x, y;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      const double level = log_root_mean_square(std::span(errors[i]).subspan(first, group));
      if (!std::isfinite(level)) continue;
      x.push_back(std::log(sizes[i]));
      y.push_back(level);
    }
    if (x.size() >= 2) slopes.push_back(slope(x, y));
  }
  if (slopes.size() < 2) return {};
  return {.slope = mean(slopes), .interval = student_interval(slopes)};
}

void add_rate(CheckContext& context, const Statement& statement, const Rate& rate, double expected,
              const std::string& text) {
  if (std::isnan(rate.slope)) {
    context.not_tested(CheckKind::data, statement, "the errors are zero").bound = expected;
    return;
  }
  context.data(statement, {.measured = rate.slope, .bound = expected},
               fmt::format("slope {:.3f}, 95 % [{:.3f}, {:.3f}], expected {:.3g}; {}", rate.slope, rate.interval.lo,
                           rate.interval.hi, expected, text));
}

InformativeSize informative_size(Index most, const std::function<double(Index)>& ratio) {
  InformativeSize size;
  double last = NAN;
  Index n = 64;
  for (; n <= most; n *= 2) {
    last = ratio(n);
    if (last < 1) return {.n = n};
  }
  n /= 2;
  const auto at = static_cast<double>(n);
  size.needed = at;
  while (size.needed < 1e100 && !(last * std::log(size.needed) / std::log(at) * at / size.needed < 1))
    size.needed *= 1.05;
  return size;
}

}  // namespace kvbench::bounds
