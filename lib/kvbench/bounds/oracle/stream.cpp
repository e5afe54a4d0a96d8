// SPDX-License-Identifier: Apache-2.0
#include <kvbench/bounds/oracle/stream.hpp>

#include <algorithm>
#include <cmath>
#include <optional>

#include <fmt/format.h>

#include <kvbench/methods/registry.hpp>

namespace kvbench {
namespace {

constexpr double weight_tolerance = 1e-5, row_tolerance = 1e-4;

/// One query that attends to all tokens of the stream so far.
QueryBlock one_query(const Subject& subject, Index tokens, Backend& backend) {
  const auto last = static_cast<std::int32_t>(tokens);
  return {.queries = backend.adopt(evenly_spaced_rows(subject.queries, subject.d(), 1), 1, subject.d()),
          .positions = {last},
          .first = backend.adopt(std::vector<std::int32_t>{0}, 1),
          .last = backend.adopt(std::vector<std::int32_t>{last}, 1)};
}

std::vector<double> row_of(const std::vector<float>& rows, std::size_t row, std::size_t width) {
  const auto begin = rows.begin() + static_cast<std::ptrdiff_t>(row * width);
  return {begin, begin + static_cast<std::ptrdiff_t>(width)};
}

void add_table(std::vector<HeldEntry>& held, const EntryTable& table, Backend& backend) {
  const std::vector<std::int32_t> ids = backend.read(table.ids);
  const auto read = [&](const Buffer<const float>& buffer) {
    return buffer.present() ? backend.read(buffer) : std::vector<float>();
  };
  const std::vector<float> num = read(table.weight_num), den = read(table.weight_den);
  const std::vector<float> keys = read(table.own_keys), values = read(table.own_values);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < 0) continue;
    HeldEntry entry{.id = ids[i]};
    if (!num.empty()) entry.num = double{num[i]};
    if (!den.empty()) entry.den = double{den[i]};
    if (!keys.empty()) entry.key = row_of(keys, i, static_cast<std::size_t>(table.own_keys.cols()));
    if (!values.empty()) entry.value = row_of(values, i, static_cast<std::size_t>(table.own_values.cols()));
    held.push_back(std::move(entry));
  }
}

Snapshot observe(const CompressedCache& cache, const Subject& subject, Index tokens, Backend& backend) {
  Snapshot snapshot{.tokens = tokens};
  for (const EntryTable& table : cache.entries(one_query(subject, tokens, backend))) {
    add_table(snapshot.held, table, backend);
  }
  std::ranges::sort(snapshot.held, {}, &HeldEntry::id);
  return snapshot;
}

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

std::string describe(const HeldEntry& entry) {
  return fmt::format("token {} with weights {:.6g} and {:.6g}", entry.id, entry.num, entry.den);
}

/// The first difference in words; absent where there is none.
std::optional<std::string> difference(const Snapshot& observed, const Snapshot& expected, const Subject& subject) {
  const auto at = [&](const Snapshot& snapshot, std::size_t i) {
    return i < snapshot.held.size() ? describe(snapshot.held[i]) : "nothing";
  };
  for (std::size_t i = 0; i < std::max(observed.held.size(), expected.held.size()); ++i) {
    const bool both = i < observed.held.size() && i < expected.held.size();
    if (both) {
      const HeldEntry &a = observed.held[i], &b = expected.held[i];
      const bool same = a.id == b.id && near(a.num, b.num) && near(a.den, b.den);
      if (same && near(a.key, b.key, subject.key(b.id)) && near(a.value, b.value, subject.value(b.id))) continue;
      if (same) return fmt::format("another key or value at {}", describe(a));
    }
    return fmt::format("{} in place of {}", at(observed, i), at(expected, i));
  }
  return std::nullopt;
}

}  // namespace

std::string StreamPlan::text() const {
  return fmt::format("prompt={};appended={};B={};seed={}", prompt, appended, budget, seed);
}

StreamPlan whole_stream(const Subject& subject, Index appended, Index budget, std::uint32_t seed) {
  const Index last = std::min(appended, subject.tokens() - 1);
  return {.prompt = subject.tokens() - last, .appended = last, .budget = budget, .seed = seed};
}

MethodUnderTest registered_method(const std::string& name, const std::vector<Assignment>& settings) {
  return [name, settings](const HeadPrompt& head, Backend& backend) {
    const MethodInfo& method = find_method(name);
    return method.prepare_head(head, method.bind(settings), backend);
  };
}

std::vector<Snapshot> observe_stream(const Subject& subject, const StreamPlan& plan, const MethodUnderTest& method,
                                     Backend& backend) {
  HeadPrompt head = first_context(subject.head, plan.prompt);
  if (plan.prompt == 0) head.calibration_keys = subject.head.keys.slice(0, plan.appended);
  const auto cache = method(head, backend)(plan.budget, plan.seed);
  std::vector<Snapshot> times = {observe(*cache, subject, plan.prompt, backend)};
  for (Index i = plan.prompt; i < plan.prompt + plan.appended; ++i) {
    cache->append({.first = i, .keys = subject.head.keys.slice(i, 1), .values = subject.head.values.slice(i, 1)});
    times.push_back(observe(*cache, subject, i + 1, backend));
  }
  return times;
}

void add_oracle_row(CheckContext& context, const std::string& part, const std::string& params,
                    std::span<const Snapshot> observed, const OracleRun& expected) {
  CheckRow& row = context.add(CheckKind::exact, part);
  row.params = params;
  if (expected.decided == 0) {
    row.assumptions = false;
    row.text = "the first decision is closer than the rounding of fp32";
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
  row.count_exceptions(differences, expected.decided);
  row.text = fmt::format(
      "ids and weights at {} times of the stream{}{}", expected.decided,
      expected.decided < std::ssize(expected.times)
          ? fmt::format("; not compared at {} later ones, after a decision closer than the rounding of fp32",
                        std::ssize(expected.times) - expected.decided)
          : "",
      first);
}

}  // namespace kvbench
