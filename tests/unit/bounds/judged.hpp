// SPDX-License-Identifier: Apache-2.0
// The rows of a check, judged as one run.
#pragma once

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <support/backends.hpp>

#include <kvbench/bounds/check/check.hpp>
#include <kvbench/bounds/check/verdicts.hpp>

namespace kvbench::testing {

using RunCheck = std::function<void(bounds::CheckContext&)>;

inline std::vector<bounds::CheckRow> judged_rows(const bounds::Subject* subject, const RunCheck& check,
                                                 const bounds::ValidateOptions& options = {},
                                                 Backend& backend = cpu()) {
  std::vector<bounds::CheckRow> rows;
  bounds::CheckContext context{
      .subject = subject, .options = options, .backend = backend, .rows = rows, .check = "test"};
  check(context);
  bounds::judge(rows, options.alpha);
  return rows;
}

/// Runs checks with a number of seeds on a back end of the processor.
class CheckRun {
 public:
  explicit CheckRun(Index seeds) : options_{.seeds = seeds} {}

  std::vector<bounds::CheckRow> operator()(const RunCheck& check, const bounds::Subject* subject = nullptr) {
    return judged_rows(subject, check, options_);
  }

 private:
  bounds::ValidateOptions options_;
};

inline bool any_fault(const std::vector<bounds::CheckRow>& rows) { return std::ranges::any_of(rows, bounds::is_fault); }

inline void check_no_fault(const std::vector<bounds::CheckRow>& rows) {
  for (const bounds::CheckRow& row : rows) {
    CAPTURE(row.part);
    CAPTURE(row.text);
    CHECK_FALSE(is_fault(row));
  }
}

/// The first row whose part begins with the text.
inline const bounds::CheckRow& row_of(const std::vector<bounds::CheckRow>& rows, const std::string& part) {
  const auto found =
      std::ranges::find_if(rows, [&](const bounds::CheckRow& row) { return row.part.starts_with(part); });
  REQUIRE(found != rows.end());
  return *found;
}

/// Runs a check and judges its rows.
class Judged {
 public:
  Judged(const bounds::Subject& subject, const RunCheck& check, Index seeds = 400, Backend& backend = cpu())
      : rows_(judged_rows(&subject, check, {.seeds = seeds}, backend)) {}
  const std::vector<bounds::CheckRow>& rows() const { return rows_; }
  /// The worst verdict of the rows whose part begins with the text.
  Verdict verdict(const std::string& part) const {
    for (const bounds::CheckRow& row : rows_) {
      if (row.part.starts_with(part) && row.verdict == Verdict::violated) return row.verdict;
    }
    return row_of(rows_, part).verdict;
  }
  bool none_violated() const { return !std::ranges::count(rows_, Verdict::violated, &bounds::CheckRow::verdict); }

 private:
  std::vector<bounds::CheckRow> rows_;
};

}  // namespace kvbench::testing
