// SPDX-License-Identifier: Apache-2.0
#include <kvbench/compare/texts.hpp>

#include <cmath>

#include <doctest/doctest.h>
#include <support/growth.hpp>

using namespace kvbench;
using namespace kvbench::compare;
using namespace kvbench::replay;
using doctest::Approx;

namespace {

Record row(std::string method, std::string trace, std::string prompt, double error) {
  Record r{};
  r.method = std::move(method), r.sha256 = std::move(trace), r.prompt = std::move(prompt),
  r.budget = Budget::parse("25%mem");
  r.metrics.fill({error, error, error, error, error, error, error, error});
  return r;
}

}  // namespace

TEST_CASE("averages, ranks and wins over texts by hand") {
  const Record rows[] = {
      row("a", "t", "0", 0.1), row("b", "t", "0", 0.2), row("c", "t", "0", 0.2), row("exact", "t", "0", 0),
      row("a", "t", "1", 0.4), row("b", "t", "1", 0.2), row("c", "t", "1", 0.8), row("part", "t", "1", 0.1),
      row("a", "t", "all", 9), row("b", "t", "all", 9), row("c", "t", "all", 9), row("a", "u", "0", 0.2),
      row("b", "u", "0", 0.3), row("c", "u", "0", 0.4),
  };
  const auto texts = summarize_texts(rows);
  REQUIRE(texts.size() == 3);
  CHECK(texts[0].method == "a");
  CHECK(texts[0].texts == 3);
  CHECK(texts[0].error == Approx(0.2));          // (0.1 0.4 0.2)^(1/3)
  CHECK(texts[0].mean_rank == Approx(4.0 / 3));  // 1, 2, 1
  CHECK(texts[0].wins == 2);
  // Logarithms are ln 0.2 + {-ln 2, ln 2, 0}: standard error ln 2 / sqrt(3), t(2, 0.975) = 4.30265.
  const double factor = std::exp(4.30265 * std::log(2) / std::sqrt(3));
  CHECK(texts[0].interval.lo == Approx(0.2 / factor).epsilon(1e-4));
  CHECK(texts[0].interval.hi == Approx(0.2 * factor).epsilon(1e-4));
  CHECK(texts[1].method == "b");
  CHECK(texts[1].mean_rank == Approx((2.5 + 1 + 2) / 3));
  CHECK(texts[1].wins == 1);
  CHECK(texts[2].mean_rank == Approx((2.5 + 3 + 3) / 3));
}

TEST_CASE("rows that were not compared on a text are in no average over texts") {
  Record rows[] = {row("a", "t", "0", 0.2), row("b", "t", "0", 0.3), row("part", "t", "0", 0.1),
                   row("a", "t", "1", 0.2), row("b", "t", "1", 0.3), row("part", "t", "1", 0.1)};
  CHECK(summarize_texts(rows)[0].method == "part");  // of a file without such marks
  for (Record& r : rows) {
    if (r.method != "part") r.best = "a";
  }
  const auto texts = summarize_texts(rows);
  REQUIRE(texts.size() == 2);
  CHECK(texts[0].method == "a");
  CHECK(texts[0].wins == 2);
}

TEST_CASE("one text has no average, two have no interval") {
  const Record one[] = {row("a", "t", "0", 0.1), row("b", "t", "0", 0.2)};
  CHECK(summarize_texts(one).empty());
  const Record two[] = {row("a", "t", "0", 0.1), row("a", "t", "1", 0.4)};
  const auto texts = summarize_texts(two);
  REQUIRE(texts.size() == 1);
  CHECK(texts[0].error == Approx(0.2));
  CHECK(std::isnan(texts[0].interval.lo));
}

TEST_CASE("the time of ranks is linear in the number of methods") {
  CHECK(testing::grows_linearly(
      [](int count) {
        std::vector<Record> rows;
        for (const char* prompt : {"0", "1"}) {
          for (int i = 0; i < count; ++i) rows.push_back(row(std::to_string(i), "t", prompt, 1 + i % 97));
        }
        CHECK(std::ssize(summarize_texts(rows)) == count);
      },
      500));
}
