// SPDX-License-Identifier: Apache-2.0
#include <kvbench/golden/compare.hpp>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <span>

#include <fmt/ranges.h>

#include <kvbench/core/enumeration.hpp>

namespace kvbench::golden {
namespace {

/// At most five ids of a list.
std::string some_of(const std::vector<std::int32_t>& ids) {
  constexpr std::size_t most = 5;
  if (ids.empty()) return "none";
  const auto shown = std::span(ids).first(std::min(most, ids.size()));
  const std::string others = ids.size() > most ? fmt::format(" and {} more", ids.size() - most) : "";
  return fmt::format("{}{}", fmt::join(shown, ", "), others);
}

/// The words about the first of several query heads that differ.
class OfHeads {
 public:
  /// `text` is called for the first only.
  template <class F>
  void add(F text) {
    if (++count_ == 1) text_ = text();
  }
  /// Adds a sentence where some differ.
  void finish(std::vector<std::string>& sentences) const {
    if (count_ == 0) return;
    sentences.push_back(count_ == 1 ? text_ : fmt::format("{} ({} query heads differ)", text_, count_));
  }

 private:
  std::string text_;
  Index count_ = 0;
};

class Comparer {
 public:
  Comparer(const Row& expected, const Row& found) : expected_(expected), found_(found) {}

  Comparison run(Scope scope) {
    if (scope == Scope::everything)
      counts("budget_tokens", static_cast<double>(expected_.budget_tokens), static_cast<double>(found_.budget_tokens));
    counts("total_bytes", expected_.total_bytes, found_.total_bytes);
    counts("bytes_read", expected_.bytes_read, found_.bytes_read);
    if (expected_.entries.size() != found_.entries.size()) {
      counts("the number of query heads", static_cast<double>(expected_.entries.size()),
             static_cast<double>(found_.entries.size()));
      return std::move(out_);
    }
    if (expected_.ids_sha256 != found_.ids_sha256) ids();
    figures("weight_num", &Row::weight_num);
    figures("weight_den", &Row::weight_den);
    figures("rel_err", &Row::rel_err);
    figures("rel_err_last", &Row::rel_err_last);
    if (scope == Scope::everything) figures("recall", &Row::recall);
    prediction();
    return std::move(out_);
  }

 private:
  void counts(const char* what, double expected, double found) {
    if (expected != found) out_.differences.push_back(fmt::format("{} is {}, expected {}", what, found, expected));
  }

  void ids() {
    OfHeads heads;
    for (Index g = 0; g < std::ssize(expected_.entries); ++g) {
      const auto &expected = ids_of_head(expected_.ids, g), &found = ids_of_head(found_.ids, g);
      if (expected == found) continue;
      heads.add([&] {
        std::vector<std::int32_t> lost, added;
        std::ranges::set_difference(expected, found, std::back_inserter(lost));
        std::ranges::set_difference(found, expected, std::back_inserter(added));
        const std::string instead =
            expected.size() == found.size() ? "" : fmt::format(", expected {}", expected.size());
        return fmt::format("query head {} answers the last query by {} entries{}: {} in place of {}", query_head(g),
                           found.size(), instead, some_of(added), some_of(lost));
      });
    }
    heads.finish(out_.differences);
  }

  void figures(const char* what, std::vector<double> Row::*values) {
    const auto &expected = expected_.*values, &found = found_.*values;
    if (expected.size() != found.size()) {
      out_.differences.push_back(fmt::format("{} has {} values, expected {}", what, found.size(), expected.size()));
      return;
    }
    OfHeads heads;
    for (std::size_t g = 0; g < expected.size(); ++g) {
      if (std::isnan(expected[g]) && std::isnan(found[g])) continue;
      const double allowed = expected_.atol + expected_.rtol * std::abs(expected[g]);
      const double part = expected[g] == found[g] ? 0 : std::abs(found[g] - expected[g]) / allowed;
      out_.deviation = std::max(out_.deviation, part);
      if (part <= 1) continue;  // false for NaN
      heads.add([&] {
        return fmt::format("{} of query head {} is {:.8g}, expected {:.8g} (within {:.1e})", what,
                           query_head(static_cast<Index>(g)), found[g], expected[g], allowed);
      });
    }
    heads.finish(out_.differences);
  }

  void prediction() {
    const double expected = expected_.kl_predicted, found = found_.kl_predicted;
    if (expected == found || (std::isnan(expected) && std::isnan(found))) return;
    const double part = std::abs(found - expected) / expected_.allowed_of_prediction();
    if (!std::isnan(part)) out_.deviation = std::max(out_.deviation, part);
    if (!(part <= 1))
      out_.differences.push_back(fmt::format("kl_predicted is {:.6g}, expected {:.6g} (within {:.1e})", found, expected,
                                             expected_.allowed_of_prediction()));
  }

  Index query_head(Index g) const { return expected_.kv_head * std::ssize(expected_.entries) + g; }

  const Row &expected_, &found_;
  Comparison out_;
};

/// `found` compared with the one of `golden` that it agrees with, else with the first.
Verified compared(const std::vector<const Row*>& golden, const Row& found, std::string_view backend, Scope scope) {
  Verified out{.row = found, .backend = std::string(backend)};
  std::string differences = "it did not run: " + found.fault;
  if (found.fault.empty()) {
    const auto same =
        std::ranges::find_if(golden, [&](const Row* row) { return compare(*row, found, scope).differences.empty(); });
    const Comparison comparison = compare(same == golden.end() ? *golden.front() : **same, found, scope);
    out.deviation = comparison.deviation;
    if (comparison.differences.empty()) return out;
    differences = fmt::format("{}", fmt::join(comparison.differences, "; "));
  }
  out.outcome = Outcome::differs;
  out.difference = name_of(found) + ": " + differences;
  return out;
}

}  // namespace

std::string_view name_of(Outcome outcome) {
  constexpr std::string_view names[] = {"same", "differs", "missing", "gone"};
  return name_in(names, outcome);
}

Comparison compare(const Row& expected, const Row& found, Scope scope) { return Comparer(expected, found).run(scope); }

std::vector<Verified> verify(std::span<const Row> golden, std::span<const Row> found, std::string_view backend,
                             Scope scope) {
  std::vector<Verified> out;
  for (const Row& row : found) {
    std::vector<const Row*> all, own;
    for (const Row& known : golden) {
      if (known.key() != row.key()) continue;
      all.push_back(&known);
      if (std::ranges::find(known.backends, backend) != known.backends.end()) own.push_back(&known);
    }
    if (!all.empty()) {
      out.push_back(compared(own.empty() ? all : own, row, backend, scope));
    } else if (row.fault.empty()) {
      out.push_back(
          {row, std::string(backend), Outcome::missing, NAN, name_of(row) + ": there is no golden row; see --write"});
    }
  }
  for (const Row& known : golden) {
    if (std::ranges::any_of(found, [&](const Row& row) { return row.key() == known.key(); })) continue;
    out.push_back({known, "", Outcome::gone, NAN, name_of(known) + ": this version does not compute the row"});
  }
  return out;
}

}  // namespace kvbench::golden
