// SPDX-License-Identifier: Apache-2.0
// A small subject for SubGen's checks, and their verdicts.
#pragma once

#include <random>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <kvbench/bounds/check/verdicts.hpp>
#include <kvbench/bounds/subgen/sketch.hpp>

namespace kvbench::testing {

/// n keys around 6 centres, values of different norms around a mean, 3 queries.
inline bounds::Subject subgen_subject(Backend& backend, Index n = 240) {
  std::mt19937 engine(5);
  std::normal_distribution<float> normal;
  constexpr Index d = 4;
  std::vector<float> centres, keys, values, queries;
  for (Index i = 0; i < 6 * d; ++i) centres.push_back(normal(engine));
  for (Index i = 0; i < n; ++i) {
    const auto centre = static_cast<Index>(engine() % 6);
    const float size = std::exp(0.5f * normal(engine));
    for (Index c = 0; c < d; ++c) {
      keys.push_back(centres[static_cast<std::size_t>(centre * d + c)] + 0.3f * normal(engine));
      values.push_back(size * normal(engine) + (c == 0 ? 2.0f : 0.0f));
    }
  }
  for (Index i = 0; i < 3 * d; ++i) queries.push_back(normal(engine));
  return bounds::make_subject({.name = "test",
                               .keys = std::move(keys),
                               .values = std::move(values),
                               .queries = std::move(queries),
                               .d = d,
                               .dv = d,
                               .scale = 0.5f},
                              backend);
}

/// Runs a check and judges its rows.
class Judged {
 public:
  Judged(Backend& backend, const bounds::Subject& subject, const std::function<void(bounds::CheckContext&)>& check,
         Index seeds = 400) {
    const bounds::ValidateOptions options{.seeds = seeds};
    bounds::CheckContext context{
        .subject = &subject, .options = options, .backend = backend, .rows = rows_, .check = "test"};
    check(context);
    judge(rows_, options.alpha);
  }
  const std::vector<bounds::CheckRow>& rows() const { return rows_; }
  /// The worst verdict of the rows whose part begins with the text.
  Verdict verdict(const std::string& part) const {
    std::vector<const bounds::CheckRow*> found;
    for (const bounds::CheckRow& row : rows_) {
      if (row.part.starts_with(part)) found.push_back(&row);
    }
    REQUIRE_FALSE(found.empty());
    Verdict worst = found.front()->verdict;
    for (const bounds::CheckRow* row : found) {
      if (row->verdict == Verdict::violated) worst = row->verdict;
    }
    return worst;
  }
  bool none_violated() const {
    for (const bounds::CheckRow& row : rows_) {
      if (row.verdict == Verdict::violated) return false;
    }
    return true;
  }

 private:
  std::vector<bounds::CheckRow> rows_;
};

}  // namespace kvbench::testing
