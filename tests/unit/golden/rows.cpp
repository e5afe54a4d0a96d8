// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>

#include <doctest/doctest.h>

#include <kvbench/core/error.hpp>
#include <kvbench/golden/compare.hpp>
#include <kvbench/golden/compute.hpp>
#include <kvbench/golden/ids.hpp>
#include <kvbench/golden/table.hpp>

#include <unit/report/column_keys.hpp>

using namespace kvbench;
using namespace kvbench::golden;

namespace {

/// A row of kv head 1 with the query heads 2 and 3.
Row row_on(const char* backend) {
  Row row;
  row.method = "sampled", row.params = "t=4", row.budget = Budget::parse("3"), row.prompt = "0";
  row.protocol = replay::Protocol::decode;
  row.layer = 5, row.kv_head = 1;
  row.backends = {backend};
  row.budget_tokens = 3, row.total_bytes = 768, row.bytes_read = 768;
  row.entries = {3, 2};
  row.ids = {{0, 4, 9}, {4, 9}};
  row.ids_sha256 = digest_of(row.ids, 2);
  row.weight_num = row.weight_den = {6, 4};
  row.rel_err = {0.5, 0.25}, row.rel_err_last = {0.1, std::numeric_limits<double>::quiet_NaN()};
  return row;
}

void set_ids(Row& row, Ids ids) {
  row.ids = std::move(ids);
  row.entries = {std::ssize(ids_of_head(row.ids, 0)), std::ssize(ids_of_head(row.ids, 1))};
  row.ids_sha256 = digest_of(row.ids, 2);
}

using Sentences = std::vector<std::string>;

}  // namespace

TEST_CASE("columns of golden rows have unique keys and a description") {
  testing::check_keys(golden_columns());
  testing::check_keys(verified_columns());
}

TEST_CASE("rows agree within the tolerance of the expected one") {
  const Row expected = row_on("ref");
  Row found = row_on("scalar");
  CHECK(compare(expected, found).differences.empty());
  CHECK(compare(expected, found).deviation == 0);
  found.rel_err[0] += 0.5 * (5e-6 + 1e-5 * 0.5);  // half of what is allowed
  CHECK(compare(expected, found).differences.empty());
  CHECK(compare(expected, found).deviation == doctest::Approx(0.5));
}

TEST_CASE("each difference is named, of several query heads the first") {
  const Row expected = row_on("ref");
  const auto differences = [&](auto change) {
    Row found = row_on("ref");
    change(found);
    return compare(expected, found).differences;
  };
  CHECK(differences([](Row& row) {
          set_ids(row, {{0, 5, 8, 9}, {4, 9}});
        }) == Sentences{"query head 2 answers the last query by 4 entries, expected 3: 5, 8 in place of 4"});
  CHECK(differences([](Row& row) {
          set_ids(row, {{0, 4}, {4, 10}});
        }) ==
        Sentences{"query head 2 answers the last query by 2 entries, expected 3: none in place of 9 (2 query heads "
                  "differ)"});
  CHECK(differences([](Row& row) {
          row.rel_err = {0.5, 0.26};
        }) == Sentences{"rel_err of query head 3 is 0.26, expected 0.25 (within 7.5e-06)"});
  CHECK(differences([](Row& row) { row.rel_err_last[1] = 0.1; }).size() == 1);
  CHECK(differences([](Row& row) { row.rel_err_last[0] = NAN; }).size() == 1);
  CHECK(differences([](Row& row) { row.weight_den.clear(); }) == Sentences{"weight_den has 0 values, expected 2"});
  CHECK(differences([](Row& row) { row.bytes_read = 767.5; }) == Sentences{"bytes_read is 767.5, expected 768"});
  CHECK(differences([](Row& row) { row.budget_tokens = 4, row.total_bytes = 1024; }) ==
        Sentences{"budget_tokens is 4, expected 3", "total_bytes is 1024, expected 768"});
  CHECK(differences([](Row& row) { row.entries = {3}; }) == Sentences{"the number of query heads is 1, expected 2"});
}

// 0.01 may differ by a thousandth of itself: a sum whose terms cancel is squared. A row that states none expects none.
TEST_CASE("a predicted KL agrees relatively") {
  Row expected = row_on("ref");
  expected.kl_predicted = 0.01;
  const auto with = [&](double kl) {
    Row found = expected;
    found.kl_predicted = kl;
    return compare(expected, found);
  };
  CHECK(with(0.01).differences.empty());
  CHECK(with(0.010005).deviation == doctest::Approx(0.5).epsilon(1e-3));
  CHECK(with(0.010005).differences.empty());
  CHECK(with(0.01002).differences == Sentences{"kl_predicted is 0.01002, expected 0.01 (within 1.0e-05)"});
  CHECK(with(NAN).differences.size() == 1);
  CHECK(compare(row_on("ref"), expected).differences.size() == 1);
  Row port = expected;
  port.kl_predicted = 0.02;
  CHECK(compare(expected, port, Scope::port).differences.size() == 1);
}

TEST_CASE("a few methods state a predicted KL, and wrappers have rows beside those of all methods") {
  std::vector<std::string> stating, names;
  for (const Method& method : golden_methods()) {
    names.push_back(method.named.info->name);
    if (states_prediction(method.named)) stating.push_back(names.back());
  }
  CHECK(stating == std::vector<std::string>{"snapkv", "kmeans", "q4_0"});
  for (const char* name : {"adakv@kvpress(snapkv@kvpress)", "criticalkv(snapkv@kvpress)"})
    CHECK(std::ranges::count(names, name) == 1);
}

TEST_CASE("of a port what it declares about itself is not compared") {
  const Row expected = row_on("ref");
  Row found = expected;
  found.recall = {0.5, 0.5}, found.budget_tokens = 4;
  CHECK(compare(expected, found).differences.size() == 2);
  CHECK(compare(expected, found, Scope::port).differences.empty());
  found.bytes_read = 1, found.rel_err[1] = 1;
  CHECK(compare(expected, found, Scope::port).differences.size() == 2);
}

TEST_CASE("a row is compared with the golden one of its back end") {
  Row one = row_on("ref"), other = row_on("scalar");
  one.backends = {"ref", "avx2"};
  set_ids(other, {{0, 4, 8}, {4, 9}});
  const std::vector<Row> golden{one, other};
  const auto outcome = [&](const Row& found, const char* backend) {
    return verify(golden, {&found, 1}, backend).front().outcome;
  };
  CHECK(outcome(one, "avx2") == Outcome::same);
  CHECK(outcome(other, "scalar") == Outcome::same);
  CHECK(outcome(other, "avx2") == Outcome::differs);
  CHECK(outcome(other, "cuda") == Outcome::same);  // which no row states: any will do
  Row third = row_on("cuda");
  set_ids(third, {{1}, {2}});
  CHECK(outcome(third, "cuda") == Outcome::differs);
}

TEST_CASE("rows that only one side has") {
  const Row known = row_on("ref");
  Row fresh = row_on("ref");
  fresh.budget = Budget::parse("4");
  std::vector<Verified> rows = verify({&known, 1}, {&fresh, 1}, "ref");
  REQUIRE(rows.size() == 2);
  CHECK(rows[0].outcome == Outcome::missing);
  CHECK(rows[0].difference ==
        "sampled[t=4] at 4, decode, prompt 0, layer 5, kv head 1: there is no golden row; see --write");
  CHECK(rows[1].outcome == Outcome::gone);
  CHECK(rows[1].difference.ends_with(": this version does not compute the row"));
  fresh.fault = "infeasible: too small";
  CHECK(verify({}, {&fresh, 1}, "ref").empty());  // it never ran
  fresh.budget = Budget::parse("3");
  rows = verify({&known, 1}, {&fresh, 1}, "ref");
  REQUIRE(rows.size() == 1);
  CHECK(rows[0].outcome == Outcome::differs);
  CHECK(rows[0].difference.ends_with(": it did not run: infeasible: too small"));
}

TEST_CASE("rows of back ends that agree become one") {
  Row same = row_on("scalar"), other = row_on("avx2");
  same.rel_err[0] += 1e-6;  // a tenth of what is allowed
  set_ids(other, {{0, 4, 8}, {4, 9}});
  double deviation = 0;
  const std::vector<Row> rows = join_backends({{row_on("ref")}, {same}, {other}}, deviation);
  REQUIRE(rows.size() == 2);
  CHECK(rows[0].backends == std::vector<std::string>{"ref", "scalar"});
  CHECK(rows[0].rel_err[0] == 0.5);  // of the first
  CHECK(rows[1].backends == std::vector<std::string>{"avx2"});
  CHECK(deviation == doctest::Approx(0.1));
  other.fault = "failed: out of range";
  CHECK_THROWS_AS(join_backends({{row_on("ref")}, {other}}, deviation), Error);
  CHECK_THROWS_AS(join_backends({{other}, {other}}, deviation), Error);
  other.fault = "infeasible: too small";
  CHECK(join_backends({{other}, {other}}, deviation).empty());
}

TEST_CASE("the row of a configuration result") {
  // 2 query heads, 3 queries; the last run of the method answered queries 1 and 2.
  constexpr float none = std::numeric_limits<float>::quiet_NaN();
  replay::ConfigurationResult result;
  result.budget_tokens = 4;
  result.bytes = {.kv = 100, .meta = 20, .read = 80};
  for (const float value : {1.f, 2.f, 6.f, 10.f, none, 30.f}) {
    result.metrics.emplace_back();
    result.metrics.back().fill(none);
    result.metrics.back()[replay::Metric::rel_err] = value;
  }
  const auto ids = [](std::vector<std::int32_t> values) { return HostView<std::int32_t>(std::move(values)); };
  methods::HostTable shared{.rows = 1, .width = 3, .ids = ids({7, -1, 0})};
  // rows: head 0 at queries 1 and 2, then head 1
  methods::HostTable of_query{.per_head = true, .per_query = true, .rows = 4, .width = 1, .ids = ids({1, 2, 3, 4})};
  of_query.weight_num = HostView<float>(std::vector<float>{1, 2, 3, 4});
  result.raw = replay::RawResult{.entries_query = 1, .entries = {shared, of_query}};

  const Row row = row_of(result, 2, 3);
  CHECK(row.fault.empty());
  CHECK(row.budget_tokens == 4);
  CHECK(row.total_bytes == 120);
  CHECK(row.bytes_read == 80);
  CHECK(row.rel_err == std::vector<double>{3, 20});
  CHECK(row.rel_err_last == std::vector<double>{6, 30});
  CHECK(row.recall.empty());
  CHECK(row.ids == Ids{{0, 2, 7}, {0, 4, 7}});
  CHECK(row.entries == std::vector<Index>{3, 3});
  CHECK(row.weight_num == std::vector<double>{4, 6});
  CHECK(row.weight_den == std::vector<double>{3, 3});

  result.status = replay::Status::infeasible;
  result.reason = "too small";
  CHECK(row_of(result, 2, 3).fault == "infeasible: too small");
}

TEST_CASE("equal lists become one, and every list is sorted") {
  CHECK(canonical({{3, 1, 2}, {2, 3, 1}}) == Ids{{1, 2, 3}});
  CHECK(canonical({{3, 1}, {1}}) == Ids{{1, 3}, {1}});
  CHECK(ids_of_head({{1, 2, 3}}, 2) == std::vector<std::int32_t>{1, 2, 3});
  CHECK(ids_of_head({{1, 3}, {1}}, 1) == std::vector<std::int32_t>{1});
}

TEST_CASE("ids as text") {
  const auto check = [](const Ids& ids, const char* text) {
    CHECK(text_of(ids) == text);
    CHECK(parse_ids(text) == ids);
  };
  check({{0, 1, 2, 3, 7, 9, 10}}, "0+3 4 2+1");
  check({{5, 5, 6, 6}}, "5 0+1 0");  // two entries of one token
  check({{1, 2}, {}, {4}}, "1+1//4");
  check({{}}, "");
}

TEST_CASE("texts that are no ids") {
  for (const char* text :
       {" ", "1,2", "2-1", "-1", "+1", "1+", "1  2", "1 ", "1+2+3", "a", "2147483647", "2147483646 1", "1/ 2"})
    CHECK_MESSAGE(!parse_ids(text), text);
  CHECK(parse_ids("0+1048575"));
  CHECK(!parse_ids("0+1048576"));  // more than most_ids
  CHECK(!parse_ids("0+1048575/0"));
}

TEST_CASE("the digest is that of numbers and ids as little-endian int32") {
  // printf '\x02\0\0\0\x01\0\0\0\0\x02\0\0\x01\0\0\0\x07\0\0\0' | sha256sum
  const char* two_lists = "85aca0563b09996e";
  CHECK(digest_of({{1, 512}, {7}}, 2) == two_lists);
  CHECK(digest_of({{7}}, 2) == digest_of({{7}, {7}}, 2));  // a single list stands for all heads
  CHECK(digest_of({{1}, {2, 3}}, 2) != digest_of({{1, 2}, {3}}, 2));
}
