// SPDX-License-Identifier: Apache-2.0
#include <kvbench/replay/answer/segments.hpp>

#include <doctest/doctest.h>
#include <support/backends.hpp>

#include <kvbench/testing/head.hpp>

using namespace kvbench;
using namespace kvbench::methods;
using namespace kvbench::replay;
using namespace kvbench::testing;

namespace {

constexpr Index tokens = 40, queries = 5, group = 3;

/// Sets of entries on one head, answered together and separately.
class Sets {
 public:
  Sets() : head_(random_head({.n = tokens, .decoded = queries, .group = group}, 1, ref())) {
    block_ = query_block(head_, tokens, tokens + queries, tokens + queries, ref());
    held_ = tokens_of(head_, tokens + queries, ref());
    const auto rows = static_cast<std::size_t>(group * queries);
    fixed_ = {random_numbers(group * queries, 2, 0), std::vector<float>(rows, 0.5f),
              random_numbers(group * queries * 6, 2, 1)};
  }

  void add(const EntryTables& tables) {
    std::vector<HostTable> host;
    for (const EntryTable& table : tables) host.push_back(on_host(table, ref()));
    tables_.push_back(tables);
    host_.push_back(std::make_unique<HostEntries>(std::move(host), queries));
  }
  std::optional<std::vector<Segment>> segments() const { return find_segments(sets(), tokens + queries, ref()); }

  /// Compares with a separate pass for each set, in the answers num / den and in ln den + max.
  void check() {
    REQUIRE(segments());
    const auto shared = attend_together(sets(), {.global = block_, .local = block_}, fixed_, held_, ref());
    REQUIRE(shared.size() == host_.size());
    for (std::size_t s = 0; s < shared.size(); ++s) {
      CAPTURE(s);
      check_equal(shared[s].answer.all, alone(tables_[s]));
      check_equal(shared[s].answer.plain, alone(host_[s]->plain_part(ref())));
    }
  }

 private:
  std::vector<const HostEntries*> sets() const {
    std::vector<const HostEntries*> sets;
    for (const auto& set : host_) sets.push_back(set.get());
    return sets;
  }
  HostState alone(const EntryTables& tables) {
    const auto rows = static_cast<Index>(fixed_.max.size());
    AttentionState state{ref().adopt(std::vector(fixed_.max), rows), ref().adopt(std::vector(fixed_.den), rows),
                         ref().adopt(std::vector(fixed_.num), rows, 6)};
    attend(ref(), held_, block_, tables, state);
    return {ref().read(state.max), ref().read(state.den), ref().read(state.num)};
  }
  static void check_equal(const HostState& a, const HostState& b) {
    for (std::size_t r = 0; r < a.max.size(); ++r) {
      CHECK(std::log(a.den[r]) + a.max[r] == doctest::Approx(std::log(b.den[r]) + b.max[r]).epsilon(1e-5));
      for (std::size_t c = r * 6; c < (r + 1) * 6; ++c) {
        CHECK(a.num[c] / a.den[r] == doctest::Approx(b.num[c] / b.den[r]).epsilon(1e-4));
      }
    }
  }

  HeadData head_;
  QueryBlock block_;
  HeadTokens held_;
  HostState fixed_;
  std::vector<EntryTables> tables_;
  std::vector<std::unique_ptr<HostEntries>> host_;
};

/// Every `step`-th token below `end`, with rows that start one token later each.
EntryTable every(std::int32_t step, std::int32_t end, bool per_head, bool per_query) {
  const Index rows = (per_head ? group : 1) * (per_query ? queries : 1);
  std::vector<std::int32_t> ids;
  for (Index r = 0; r < rows; ++r) {
    for (std::int32_t id = 0; id < end; id += step) ids.push_back((id + static_cast<std::int32_t>(r)) % tokens);
  }
  const Index width = std::ssize(ids) / rows;
  return {.per_head = per_head, .per_query = per_query, .ids = ref().adopt(std::move(ids), rows, width)};
}

/// Row r: the id 8 * (r % 3) + level, then the ids at these `steps` after it, in this order.
EntryTable level_of(std::int32_t level, const std::vector<std::int32_t>& steps) {
  std::vector<std::int32_t> ids;
  for (std::int32_t r = 0; r < queries; ++r) {
    for (const std::int32_t step : steps) ids.push_back(8 * (r % 3) + level + step);
    ids.push_back(-1);
  }
  return {.per_query = true, .ids = ref().adopt(std::move(ids), queries, std::ssize(steps) + 1)};
}

EntryTable weighted(EntryTable table, float num, float den) {
  const auto slots = static_cast<std::size_t>(table.ids.size());
  table.weight_num = ref().adopt(std::vector<float>(slots, num), table.ids.rows(), table.ids.cols());
  table.weight_den = ref().adopt(std::vector<float>(slots, den), table.ids.rows(), table.ids.cols());
  return table;
}

}  // namespace

TEST_CASE("nested sets of any scope answer together as they do alone") {
  for (const bool per_head : {false, true}) {
    for (const bool per_query : {false, true}) {
      CAPTURE(per_head);
      CAPTURE(per_query);
      Sets sets;
      for (const std::int32_t end : {40, 20, 10}) sets.add({every(1, end, per_head, per_query)});
      sets.check();
    }
  }
}

TEST_CASE("sets that overlap, with weights by set, several tables and scopes, answer as they do alone") {
  Sets sets;
  sets.add({weighted(every(1, 36, false, false), 2, 3), every(5, 40, true, true)});
  sets.add({weighted(every(2, 36, false, false), 4, 5), every(5, 30, true, true)});
  sets.add({every(3, 36, false, false)});
  sets.add({});  // only the fixed tokens
  sets.check();
}

TEST_CASE("sets of several tables, whose ids increase or not, answer as they do alone") {
  for (const bool increasing : {true, false}) {
    CAPTURE(increasing);
    Sets sets;
    const std::vector<std::int32_t> steps = increasing ? std::vector{0, 4, 8, 12} : std::vector{12, 0, 8, 4};
    const EntryTable small = level_of(0, steps), more = level_of(1, steps), most = level_of(2, {0, 4, 8});
    sets.add({most, more, small});
    sets.add({more, small});
    sets.add({small});
    sets.check();
  }
}

TEST_CASE("sets that share one table and differ in others answer as they do alone") {
  Sets sets;
  const EntryTable shared = level_of(0, {0, 4, 8, 12});
  sets.add({shared, level_of(1, {0, 4})});
  sets.add({shared, level_of(1, {4, 8})});  // no set holds all tables, and token 5 of row 0 is in two of them
  sets.add({shared});
  sets.check();
}

TEST_CASE("a token once in each sum counts in both") {
  Sets sets;
  const EntryTable above = weighted(every(1, 12, false, false), 2, 0),
                   below = weighted(every(1, 12, false, false), 0, 3);
  sets.add({above, below});
  sets.add({below, above});
  sets.check();
}

TEST_CASE("sets are not answered together where that would not save work") {
  Sets disjoint;
  for (const std::int32_t first : {0, 20}) {
    std::vector<std::int32_t> ids;
    for (std::int32_t j = first; j < first + 20; ++j) ids.push_back(j);
    disjoint.add({{.ids = ref().adopt(std::move(ids), 1, 20)}});
  }
  CHECK_FALSE(disjoint.segments());

  Sets own;
  for (int copies = 0; copies < 2; ++copies) {
    EntryTable table = every(1, 8, false, false);
    table.own_values = ref().adopt(std::vector<float>(8 * 6, 1.0f), 8, 6);
    own.add({table});
  }
  CHECK_FALSE(own.segments());
}
