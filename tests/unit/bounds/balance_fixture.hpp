// SPDX-License-Identifier: Apache-2.0
// Streams for the checks of BalanceKV, and the rows of a check with a planted fault.
#pragma once

#include <algorithm>
#include <cmath>

#include <doctest/doctest.h>

#include <kvbench/bounds/balancekv/tree.hpp>
#include <kvbench/bounds/check/synthetic.hpp>
#include <kvbench/bounds/check/verdicts.hpp>

namespace kvbench::testing {

/// A synthetic stream of the suite.
inline bounds::Subject synthetic(const std::string& name, Index queries, Backend& backend) {
  for (const bounds::SubjectSource& source : bounds::synthetic_subjects(queries)) {
    if (source.name == "synthetic:" + name) return source.load(backend);
  }
  throw Error("no stream {}", name);
}

/// A check's context and its rows, judged as one run.
class CheckRun {
 public:
  explicit CheckRun(Index seeds) { options_.seeds = seeds; }

  std::vector<bounds::CheckRow> operator()(const std::function<void(bounds::CheckContext&)>& check,
                                           const bounds::Subject* subject = nullptr) {
    std::vector<bounds::CheckRow> rows;
    bounds::CheckContext context{
        .subject = subject, .options = options_, .backend = *backend_, .rows = rows, .check = "balancekv"};
    check(context);
    judge(rows, options_.alpha);
    return rows;
  }
  Backend& backend() { return *backend_; }

 private:
  bounds::ValidateOptions options_;
  std::unique_ptr<Backend> backend_ = make_cpu_backend();
};

inline bool any_fault(const std::vector<bounds::CheckRow>& rows) { return std::ranges::any_of(rows, bounds::is_fault); }

/// The first row whose part begins with the text.
inline const bounds::CheckRow& row_of(const std::vector<bounds::CheckRow>& rows, const std::string& part) {
  const auto found =
      std::ranges::find_if(rows, [&](const bounds::CheckRow& row) { return row.part.starts_with(part); });
  REQUIRE(found != rows.end());
  return *found;
}

}  // namespace kvbench::testing
