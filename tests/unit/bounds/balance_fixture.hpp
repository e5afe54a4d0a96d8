// SPDX-License-Identifier: Apache-2.0
// Streams for the checks of BalanceKV, and the rows of a check with a planted fault.
#pragma once

#include <algorithm>
#include <cmath>

#include <doctest/doctest.h>

#include <kvbench/bounds/balancekv/balance_tree.hpp>

namespace kvbench::testing {

/// A synthetic stream of the suite.
inline Subject synthetic(const std::string& name, Index queries, Backend& backend) {
  for (const SubjectSource& source : synthetic_subjects(queries)) {
    if (source.name == "synthetic:" + name) return source.load(backend);
  }
  throw Error("no stream {}", name);
}

/// A check's context and its rows, judged as one run.
class CheckRun {
 public:
  explicit CheckRun(Index seeds) { options_.seeds = seeds; }

  std::vector<CheckRow> operator()(const std::function<void(CheckContext&)>& check, const Subject* subject = nullptr) {
    std::vector<CheckRow> rows;
    CheckContext context{
        .subject = subject, .options = options_, .backend = *backend_, .rows = rows, .claim = "balancekv"};
    check(context);
    judge(rows, options_.alpha);
    return rows;
  }
  Backend& backend() { return *backend_; }

 private:
  ValidateOptions options_;
  std::unique_ptr<Backend> backend_ = make_cpu_backend();
};

inline bool any_fault(const std::vector<CheckRow>& rows) { return std::ranges::any_of(rows, is_fault); }

/// The first row whose part begins with the text.
inline const CheckRow& row_of(const std::vector<CheckRow>& rows, const std::string& part) {
  const auto found = std::ranges::find_if(rows, [&](const CheckRow& row) { return row.part.starts_with(part); });
  REQUIRE(found != rows.end());
  return *found;
}

}  // namespace kvbench::testing
