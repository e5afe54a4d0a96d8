// SPDX-License-Identifier: Apache-2.0
// Properties that a row declares or gives a reason against: exactness, scaling, shifts, numbering of heads.
#include <algorithm>

#include <support/rows.hpp>

using namespace kvbench;
using namespace kvbench::methods;
using namespace kvbench::testing;

namespace {

constexpr double tolerance = 1e-4;  // answers are of size 1, sums in fp32

/// Runs test(row, heads, backend) where the property is declared; otherwise the row must give a reason.
template <class Test>
void for_each_row_with(Property Properties::*property, Test test) {
  for_each_row([&](const Row& row, Backend& backend) {
    const Property& declared = row.info->properties.*property;
    if (declared.holds) {
      test(row, heads_for(row, {}, backend), backend);
    } else {
      CHECK_FALSE(declared.reason.empty());
    }
  });
}

void check_close(const std::vector<Result>& a, const std::vector<Result>& b) {
  for (std::size_t h = 0; h < a.size(); ++h) CHECK(max_difference(a[h].answers, b[h].answers) < tolerance);
}

}  // namespace

TEST_CASE("a budget of the whole context answers exactly, where declared") {
  for_each_row_with(&Properties::full_budget_exact, [](const Row& row, const Heads& heads, Backend& backend) {
    for (const Index budget : {48, 49, 500}) {
      CAPTURE(budget);
      const auto results = prefill(open(row, heads, budget, 1, backend), heads, backend);
      for (std::size_t h = 0; h < heads.size(); ++h) {
        const QueryBlock block = query_block(heads[h], heads[h].n, heads[h].total, heads[h].total, backend);
        CHECK(max_difference(results[h].answers, exact_answer(heads[h], block, backend)) < tolerance);
      }
    }
    // A budget of context and decoded tokens drops no token.
    const auto decoded = decode(open(row, heads, 500, 1, backend), heads, 5, row.info->observes, backend);
    for (std::size_t h = 0; h < heads.size(); ++h) {
      for (std::size_t i = 0; i < decoded[h].size(); ++i) {
        const Index position = heads[h].n + static_cast<Index>(i);
        const QueryBlock block = query_block(heads[h], position, position + 1, position + 1, backend);
        CHECK(max_difference(decoded[h][i].answers, exact_answer(heads[h], block, backend)) < tolerance);
      }
    }
  });
}

TEST_CASE("scaling the values scales the answers, where declared") {
  for_each_row_with(&Properties::value_scaling, [](const Row& row, const Heads& heads, Backend& backend) {
    Heads scaled = heads;
    for (HeadData& head : scaled) {
      for (float& value : head.values) value *= 4;
    }
    const auto before = prefill(open(row, heads, 24, 1, backend), heads, backend);
    auto after = prefill(open(row, scaled, 24, 1, backend), scaled, backend);
    for (Result& result : after) {
      for (float& x : result.answers) x /= 4;
    }
    check_close(before, after);
  });
}

TEST_CASE("adding one vector to all keys changes no answer, where declared") {
  for_each_row_with(&Properties::key_shift, [](const Row& row, const Heads& heads, Backend& backend) {
    Heads shifted = heads;
    for (HeadData& head : shifted) {
      for (std::size_t i = 0; i < head.keys.size(); ++i) {
        head.keys[i] += 0.25f * static_cast<float>(i % static_cast<std::size_t>(head.d)) - 0.5f;
      }
    }
    for (const Index budget : {24, 40}) {
      check_close(prefill(open(row, heads, budget, 1, backend), heads, backend),
                  prefill(open(row, shifted, budget, 1, backend), shifted, backend));
    }
  });
}

TEST_CASE("results do not depend on the indices of the heads, where declared") {
  for_each_row_with(&Properties::head_permutation, [](const Row& row, const Heads& heads, Backend& backend) {
    Heads moved(heads.rbegin(), heads.rend());
    for (std::size_t h = 0; h < moved.size(); ++h) moved[h].head = KvHeadId(static_cast<std::int64_t>(h) + 4);
    const auto before = prefill(open(row, heads, 24, 1, backend), heads, backend);
    const auto after = prefill(open(row, moved, 24, 1, backend), moved, backend);
    for (std::size_t h = 0; h < heads.size(); ++h) {
      const Result& twin = after[heads.size() - 1 - h];
      CHECK(before[h].entries == twin.entries);
      CHECK(before[h].answers == twin.answers);
    }
  });
}
