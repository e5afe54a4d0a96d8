// SPDX-License-Identifier: Apache-2.0
// Answers of complete replays compared with serial loops over the arrays of the trace.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include <doctest/doctest.h>

#include <kvbench/methods/registry.hpp>

#include <support/fakes.hpp>
#include <support/small_trace.hpp>

using namespace kvbench;
using namespace kvbench::methods;
using namespace kvbench::replay;
using namespace kvbench::testing;
using doctest::Approx;

namespace {

constexpr Index context = 28, budget = 7;

template <class F>
void check_all_heads(const SmallTrace& trace, const ReplayResults& results, F entries_of) {
  for (const HeadResult& result : results.heads) {
    const Arrays head(trace.reader(), result.place.layer, result.place.kv_head);
    check_result(head, result, 0, entries_of(head));
  }
}

/// The same where entries follow from the query head and the position alone.
template <class F>
void check_entries(const SmallTrace& trace, const ReplayResults& results, F entries) {
  check_all_heads(trace, results, [&](const Arrays& head) -> TermEntries {
    return [&](Index g, Index position) { return entries(head, g, position); };
  });
}

/// The tokens before the last W of the context to which the last W queries attend most, and those W tokens, in
/// increasing order.
std::set<Index> votes(const Arrays& head, Index window, Index kept) {
  std::vector<std::pair<double, Index>> ranking;
  for (Index j = 0; j < context - window; ++j) ranking.push_back({0, j});
  for (Index g = 0; g < head.group; ++g) {
    for (Index t = context - window; t < context; ++t) {
      const double log_z = attend_to(head, g, t, tokens_between(0, t + 1)).log_z;
      for (auto& [mass, j] : ranking) mass -= std::exp(head.logit(g, t, j) - log_z);
    }
  }
  std::ranges::sort(ranking);
  std::set<Index> ids;
  for (Index i = 0; i < kept - window; ++i) ids.insert(ranking[static_cast<std::size_t>(i)].second);
  for (Index j = context - window; j < context; ++j) ids.insert(j);
  return ids;
}

}  // namespace

TEST_CASE("snapkv in decode: tokens with the most votes and every decoded token") {
  const SmallTrace trace;
  const ReplayRequest request =
      request_of(find_method("snapkv"), {{"window", "3"}, {"pooling", "none"}, {"per", "kv_head"}}, budget);
  check_all_heads(trace, replay::replay(trace.reader(), request, serial), [](const Arrays& head) -> TermEntries {
    return [kept = votes(head, 3, budget)](Index, Index position) {
      std::vector<TermEntry> entries = tokens_between(context, position + 1);
      for (const Index j : kept) entries.push_back({.id = j});
      return entries;
    };
  });
}

TEST_CASE("sink in decode: first tokens and a sliding window") {
  const SmallTrace trace;
  const ReplayRequest request = request_of(find_method("sink"), {{"sinks", "2"}, {"reposition", "false"}}, budget);
  const ReplayResults results = replay::replay(trace.reader(), request, serial);
  check_entries(trace, results, [](const Arrays&, Index, Index position) {
    std::vector<TermEntry> entries = tokens_between(position + 1 - (budget - 2), position + 1);
    entries.push_back({.id = 0});
    entries.push_back({.id = 1});
    return entries;
  });
  // Recall is computed over the tokens that may be dropped: all except the sinks.
  const Arrays head(trace.reader(), 0, 0);
  for (const Index t : {28, 33, 39}) {
    std::vector<std::pair<double, Index>> ranking;
    double kept_mass = 0, best_mass = 0, common = 0;
    for (Index j = 2; j <= t; ++j) ranking.push_back({-head.logit(0, t, j), j});
    std::ranges::sort(ranking);
    for (std::size_t i = 0; i < static_cast<std::size_t>(budget - 2); ++i) {
      common += ranking[i].second > t - (budget - 2);
      best_mass += std::exp(-ranking[i].first);
    }
    for (Index j = t + 1 - (budget - 2); j <= t; ++j) kept_mass += std::exp(head.logit(0, t, j));
    const ConfigurationResult& result = results.heads[0].results[0];
    const auto row = static_cast<std::size_t>(t - context);
    CHECK(metric(result, row, Metric::recall) == Approx(common / (budget - 2)));
    CHECK(metric(result, row, Metric::mass_recall) == Approx(kept_mass / best_mass).epsilon(1e-4));
  }
  CHECK(results.heads[0].results[0].kept_tokens == budget);
}

TEST_CASE("prefill: the window after the context is exact and causal") {
  const SmallTrace trace;
  ReplayRequest request = request_of(find_method("sink"), {{"sinks", "2"}, {"reposition", "false"}}, budget);
  request.protocol = Protocol::prefill;
  check_entries(trace, replay::replay(trace.reader(), request, serial), [](const Arrays&, Index, Index position) {
    std::vector<TermEntry> entries = tokens_between(context - (budget - 2), position + 1);
    entries.push_back({.id = 0});
    entries.push_back({.id = 1});
    return entries;
  });
}

TEST_CASE("decoded=keep fixes the selection and keeps all later tokens") {
  const SmallTrace trace;
  ReplayRequest request = request_of(find_method("sink"), {{"sinks", "1"}, {"reposition", "false"}}, 2);
  request.decoded = Decoded::keep;
  const ReplayResults results = replay::replay(trace.reader(), request, serial);
  CHECK(results.prompts[0].protocol == Protocol::decode);
  check_entries(trace, results, [](const Arrays&, Index, Index position) {
    std::vector<TermEntry> entries = tokens_between(context - 1, position + 1);
    entries.push_back({.id = 0});
    return entries;
  });
}

TEST_CASE("a state that changes with every token answers each query in the state of its position") {
  const SmallTrace trace;
  const MethodInfo info = fake_spread_values();
  check_entries(
      trace, replay::replay(trace.reader(), request_of({&info}, budget), serial),
      [](const Arrays& head, Index, Index position) {
        std::vector<std::vector<double>> values;
        for (Index t = 0; t <= position; ++t) {
          values.push_back(head.value(t));
          const Index leaving = t - budget;
          for (const Index next : {1, 2}) {
            for (std::size_t c = 0; leaving >= 0 && leaving + next <= t && c < static_cast<std::size_t>(head.dv); ++c) {
              values[static_cast<std::size_t>(leaving + next)][c] += values[static_cast<std::size_t>(leaving)][c] / 2;
            }
          }
        }
        std::vector<TermEntry> entries;
        for (Index j = position + 1 - budget; j <= position; ++j) {
          entries.push_back({.id = j, .value = values[static_cast<std::size_t>(j)]});
        }
        return entries;
      });
}

TEST_CASE("two sets: numerator and denominator sum over different tokens") {
  const SmallTrace trace;
  const MethodInfo info = fake_two_sets();
  const ReplayResults results = replay::replay(trace.reader(), request_of({&info}, budget), serial);
  check_entries(trace, results, [](const Arrays&, Index, Index position) {
    std::vector<TermEntry> entries = tokens_between(context, position + 1);
    for (Index j = 0; j < context; ++j) entries.push_back({j, j % 2 == 0 ? 2.0 : 0.0, j % 2 == 0 ? 0.0 : 2.0});
    entries.push_back({0, 0, 1});
    return entries;
  });
  for (const Metric none : {Metric::mass_err, Metric::dir_err, Metric::recall, Metric::mass_recall}) {
    CHECK(std::isnan(metric(results.heads[0].results[0], 0, none)));
  }
}

TEST_CASE("a table of each query head and query") {
  const SmallTrace trace;
  const MethodInfo info = fake_striped();
  check_entries(trace, replay::replay(trace.reader(), request_of({&info}, budget), serial),
                [](const Arrays&, Index g, Index position) {
                  std::vector<TermEntry> entries;
                  for (Index j = 0; j <= position; ++j) {
                    if (j == 0 || j % 3 == (position + g) % 3) entries.push_back({.id = j});
                  }
                  return entries;
                });
}

TEST_CASE("an observing method runs step by step and evicts by the attention that it observed") {
  const SmallTrace trace;
  const MethodInfo info = fake_observer();
  check_all_heads(trace, replay::replay(trace.reader(), request_of({&info}, budget), serial),
                  [](const Arrays& head) -> TermEntries {
                    std::map<Index, std::vector<TermEntry>> by_position;
                    std::map<Index, double> mass;
                    for (Index j = context - budget; j < context; ++j) mass[j] = 0;
                    for (Index t = context; t < head.n; ++t) {
                      mass[t] = 0;
                      std::vector<TermEntry>& entries = by_position[t];
                      for (const auto& [id, sum] : mass) entries.push_back({.id = id});
                      for (Index g = 0; g < head.group; ++g) {
                        const double log_z = attend_to(head, g, t, entries).log_z;
                        for (auto& [id, sum] : mass) sum += std::exp(head.logit(g, t, id) - log_z);
                      }
                      mass.erase(std::ranges::min_element(mass, {}, [](const auto& kept) { return kept.second; }));
                    }
                    return [by_position](Index, Index position) { return by_position.at(position); };
                  });
}

TEST_CASE(
    "stream: every token is appended from the first one on, and every recorded query is answered at its position") {
  const SmallTrace trace;
  ReplayRequest request = request_of(find_method("sink"), {{"sinks", "2"}, {"reposition", "false"}}, budget);
  request.methods.push_back(request_of(find_method("snapkv"), {}, budget).methods[0]);
  request.protocol = Protocol::stream;
  const ReplayResults results = replay::replay(trace.reader(), request, serial);
  CHECK(results.heads[0].positions.size() == 40);
  CHECK(results.prompts[0].context_tokens == 28);  // the base of budgets that are shares
  check_entries(trace, results, [](const Arrays&, Index, Index position) {
    std::vector<TermEntry> entries = tokens_between(std::max<Index>(2, position + 1 - (budget - 2)), position + 1);
    for (Index sink_token = 0; sink_token < std::min<Index>(2, position + 1); ++sink_token)
      entries.push_back({.id = sink_token});
    return entries;
  });
  CHECK(results.heads[0].results[1].status == Status::skipped);
  CHECK(contains(results.heads[0].results[1].reason,
                 "compresses a whole context at once; it is not a streaming algorithm"));
}

TEST_CASE("stream: subgen uses the radius that fits the budget at the end of the prompt, and reports it") {
  const SmallTrace trace;
  ReplayRequest request = request_of(find_method("subgen"), {{"t", "1"}}, 14);
  request.protocol = Protocol::stream;
  const ReplayResults streamed = replay::replay(trace.reader(), request, serial);
  REQUIRE(streamed.heads[0].results[0].notes.size() == 1);
  CHECK(contains(streamed.heads[0].results[0].notes[0].text, "hindsight"));
  // Clusters and draws are those of a context compressed at once: the same bytes at the end.
  request.protocol = Protocol::decode;
  const ReplayResults decoded = replay::replay(trace.reader(), request, serial);
  CHECK(decoded.heads[0].results[0].notes.empty());
  CHECK(streamed.heads[0].results[0].bytes.kv == decoded.heads[0].results[0].bytes.kv);
}
