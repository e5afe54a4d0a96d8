// SPDX-License-Identifier: Apache-2.0
// The input of a method: the context without protected ends in its own token numbers, no evaluated query, the weights
// of its own entries.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include <doctest/doctest.h>

#include <kvbench/methods/registry.hpp>
#include <kvbench/replay/exact/head.hpp>

#include <support/fakes.hpp>
#include <support/small_trace.hpp>

using namespace kvbench;
using namespace kvbench::methods;
using namespace kvbench::replay;
using namespace kvbench::testing;
using doctest::Approx;

namespace {

using Rows = std::vector<float>;

Rows rows_of(const Rows& matrix, Index dim, Index begin, Index end) {
  return {matrix.begin() + begin * dim, matrix.begin() + end * dim};
}

/// The inputs of one cache, and the observed weights.
struct Recording {
  Rows keys, values, appended, fixed_log_sum_exp;
  std::vector<std::int32_t> observed;
  Index budget = 0, steps = 0, window_tokens = 0;
  std::vector<Index> appended_first;
  std::vector<std::int32_t> asked, visible_end;
  std::vector<Index> score_columns;
  std::vector<double> weight_sums;
};

/// Keeps the first two tokens of the context and all appended tokens; takes two tokens at once.
class Recorder : public CompressedCache {
 public:
  Recorder(const HeadPrompt& head, Index budget, Backend& backend, Recording& log)
      : backend_(backend), log_(log), tokens_(head.tokens()), context_(head.tokens()), group_(head.group) {
    log_.keys = backend.read(head.keys);
    log_.values = backend.read(head.values);
    log_.observed = head.observed_positions;
    log_.fixed_log_sum_exp = backend.read(head.fixed_log_sum_exp);
    log_.budget = budget;
  }
  Index takes(const TokenBlock& tokens) override { return std::min<Index>(2, tokens.size()); }
  void append(const TokenBlock& tokens) override {
    const Rows keys = backend_.read(tokens.keys);
    log_.appended.insert(log_.appended.end(), keys.begin(), keys.end());
    log_.appended_first.push_back(tokens.first);
    tokens_ += tokens.size();
  }
  EntryTables entries(const QueryBlock& queries) const override {
    const std::vector<std::int32_t> last = backend_.read(queries.last);
    log_.asked.insert(log_.asked.end(), queries.positions.begin(), queries.positions.end());
    log_.visible_end.insert(log_.visible_end.end(), last.begin(), last.end());
    log_.score_columns.push_back(queries.scores.cols());
    EntryTables tables = ids_table(backend_, {0, 1});
    std::vector<TokenId> decoded;
    for (Index j = context_; j < tokens_; ++j) decoded.push_back(static_cast<TokenId>(j));
    tables.push_back(ids_table(backend_, decoded)[0]);
    return tables;
  }
  void observe(const QueryBlock& queries, const EntryTables&, std::span<const Buffer<const float>> weights) override {
    CHECK(queries.size() == 1);
    CHECK(weights.size() == 2);
    ++log_.steps;
    std::vector<double> sums(static_cast<std::size_t>(group_));
    for (const auto& table : weights) {
      const Rows shares = backend_.read(table);
      REQUIRE(table.rows() == group_);
      for (std::size_t i = 0; i < shares.size(); ++i) sums[i / static_cast<std::size_t>(table.cols())] += shares[i];
    }
    log_.weight_sums.insert(log_.weight_sums.end(), sums.begin(), sums.end());
  }
  Footprint footprint() const override { return {}; }

 private:
  Backend& backend_;
  Recording& log_;
  Index tokens_, context_, group_;
};

MethodInfo recorder(Recording& log) {
  return method_of("recorder", [&log](const HeadPrompt& head, Index budget, std::uint32_t, Backend& backend) {
    return std::make_unique<Recorder>(head, budget, backend, log);
  });
}

ReplayRequest one_head(const MethodInfo& info, Index budget) {
  ReplayRequest request = request_of({&info}, budget);
  request.layers = {1};
  request.kv_heads = {1};
  return request;
}

}  // namespace

TEST_CASE("token numbers with protected ends") {
  const TokenMap map{.first = 2, .middle = 5, .last = 3};  // the context is 10 tokens, the method's the tokens 2 .. 6
  CHECK(!map.identity());
  CHECK(map.to_global(0) == 2);
  CHECK(map.to_global(4) == 6);
  CHECK(map.to_global(5) == 10);
  CHECK(map.to_global(8) == 13);
  for (const auto& ends : std::map<Index, Index>{{0, 0}, {2, 0}, {3, 1}, {7, 5}, {8, 5}, {10, 5}, {11, 6}, {14, 9}}) {
    CAPTURE(ends.first);
    CHECK(map.local_end(ends.first) == ends.second);
  }
  const TokenMap plain{.first = 0, .middle = 5, .last = 0};
  CHECK(plain.identity());
  for (Index j = 0; j < 9; ++j) CHECK(plain.to_global(j) == j);
  for (Index j = 0; j < 9; ++j) CHECK(plain.local_end(j) == j);
}

TEST_CASE("protected ends are hidden from the method and kept exactly") {
  const SmallTrace trace;
  Recording log;
  const MethodInfo info = recorder(log);
  ReplayRequest request = one_head(info, 12);
  request.protect_first = 3;
  request.protect_last = 4;
  const ReplayResults results = replay::replay(trace.reader(), request, serial);
  const Arrays head(trace.reader(), 1, 1);
  CHECK(log.keys == rows_of(head.keys, head.d, 3, 24));
  CHECK(log.values == rows_of(head.values, head.dv, 3, 24));
  CHECK(log.budget == 12 - 7);
  CHECK(log.appended == rows_of(head.keys, head.d, 28, 40));
  CHECK(log.appended_first == std::vector<Index>{21, 23, 25, 27, 29, 31});
  std::vector<std::int32_t> positions, ends;
  for (std::int32_t p = 21; p < 33; ++p) positions.push_back(p), ends.push_back(p + 1);
  CHECK(log.asked == positions);
  CHECK(log.visible_end == ends);
  for (const Index columns : log.score_columns) CHECK(columns == 33);
  // Queries inside the method's context, and those of the protected tail after it, which attend to all of it.
  REQUIRE(!log.observed.empty());
  CHECK(log.observed.front() == 0);
  CHECK(log.observed.back() == 24);
  // Local tokens 0 and 1 are tokens 3 and 4 of the trace.
  check_result(head, results.heads[0], 0, [](Index, Index position) {
    std::vector<TermEntry> entries = tokens_between(0, 5);
    for (const TermEntry& e : tokens_between(24, position + 1)) entries.push_back(e);
    return entries;
  });
  CHECK(results.heads[0].results[0].budget_tokens == 12);
}

// The context is 28 tokens, of which 3 and 4 are protected: queries 3 .. 23 see tokens 0 .. 2 of them, and query p
// above that also 24 .. p.
TEST_CASE("a method receives the mass of the protected tokens that its observed queries see") {
  const SmallTrace trace;
  Recording log;
  const MethodInfo info = recorder(log);
  ReplayRequest request = one_head(info, 12);
  replay::replay(trace.reader(), request, serial);
  CHECK(log.fixed_log_sum_exp.empty());
  request.protect_first = 3;
  request.protect_last = 4;
  replay::replay(trace.reader(), request, serial);
  const Arrays head(trace.reader(), 1, 1);
  REQUIRE(std::ssize(log.fixed_log_sum_exp) == head.group * 25);
  for (Index g = 0; g < head.group; ++g) {
    for (Index position = 3; position < 28; ++position) {
      double sum = 0;
      for (Index j = 0; j < 3; ++j) sum += std::exp(head.logit(g, position, j));
      for (Index j = 24; j <= position; ++j) sum += std::exp(head.logit(g, position, j));
      CHECK(log.fixed_log_sum_exp[static_cast<std::size_t>(g * 25 + position - 3)] ==
            Approx(std::log(sum)).epsilon(1e-5));
    }
  }
  request.protect_first = 0;
  replay::replay(trace.reader(), request, serial);
  CHECK(log.fixed_log_sum_exp.front() == -std::numeric_limits<float>::infinity());  // query 0 sees none of 24 .. 27
}

TEST_CASE("protected tokens outside the budget are kept in addition to it") {
  const SmallTrace trace;
  Recording log;
  const MethodInfo info = recorder(log);
  ReplayRequest request = one_head(info, 5);
  request.protect_first = 3;
  request.protect_last = 4;
  request.protect_outside = true;
  const ReplayResults results = replay::replay(trace.reader(), request, serial);
  CHECK(results.heads[0].results[0].budget_tokens == 12);
  CHECK(results.prompts[0].context_tokens == 28 - 7);
  CHECK(log.budget == 5);
}

TEST_CASE("a budget within the protected tokens is infeasible") {
  const SmallTrace trace;
  Recording log;
  const MethodInfo info = recorder(log);
  ReplayRequest request = one_head(info, 7);
  request.protect_first = 3;
  request.protect_last = 4;
  const ReplayResults results = replay::replay(trace.reader(), request, serial);
  const ConfigurationResult& result = results.heads[0].results[0];
  CHECK(result.status == Status::infeasible);
  CHECK(contains(result.reason, "7 protected"));
}

TEST_CASE("an observing method runs step by step, and its weights sum to one over its entries") {
  const SmallTrace trace;
  Recording log;
  MethodInfo info = recorder(log);
  info.observes = true;
  replay::replay(trace.reader(), one_head(info, 5), serial);
  CHECK(log.steps == 12);
  CHECK(log.appended_first.size() == 12);
  REQUIRE(log.weight_sums.size() == 24);
  for (const double sum : log.weight_sums) CHECK(sum == Approx(1).epsilon(1e-5));
}

TEST_CASE("observe() is not called for a method that does not observe") {
  const SmallTrace trace;
  Recording log;
  const MethodInfo info = recorder(log);
  replay::replay(trace.reader(), one_head(info, 5), serial);
  CHECK(log.steps == 0);
  CHECK(log.appended_first.size() == 6);
}

TEST_CASE("evaluated queries change errors but no kept set") {
  const SmallTrace trace;
  const auto other = trace.with_other_queries(28);
  const MethodInfo shared = fake_shared_layer();
  ReplayRequest request =
      request_of({&find_method("snapkv"), &find_method("uniform"), &find_method("random"), &shared}, 7);
  request.methods[0].params = find_method("snapkv").bind(std::vector<Assignment>{{"window", "3"}});
  const ReplayResults a = replay::replay(trace.reader(), request, serial), b = replay::replay(*other, request, serial);
  for (std::size_t h = 0; h < a.heads.size(); ++h) {
    for (std::size_t c = 0; c < a.configurations.size(); ++c) {
      CAPTURE(c);
      const ConfigurationResult &one = a.heads[h].results[c], &two = b.heads[h].results[c];
      REQUIRE_MESSAGE(one.status == Status::ok, one.reason);
      const auto &kept = one.raw.value().entries, &same = two.raw.value().entries;
      REQUIRE(kept.size() == same.size());
      for (std::size_t t = 0; t < kept.size(); ++t) CHECK(kept[t].ids == same[t].ids);
      CHECK(metric(one, 0, Metric::rel_err) != metric(two, 0, Metric::rel_err));
    }
  }
}

TEST_CASE("queries inside the context do change what snapkv keeps") {
  const SmallTrace trace;
  const auto other = trace.with_other_queries(20);
  const ReplayRequest request = request_of(find_method("snapkv"), {{"window", "3"}}, 7);
  const ReplayResults a = replay::replay(trace.reader(), request, serial), b = replay::replay(*other, request, serial);
  CHECK(a.heads[0].results[0].raw.value().entries[0].ids != b.heads[0].results[0].raw.value().entries[0].ids);
}
