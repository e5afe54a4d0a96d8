// SPDX-License-Identifier: Apache-2.0
// Edge cases: one to three tokens, one channel, equal keys, duplicates, zero values, very large logits, windows.
#include <algorithm>
#include <cmath>

#include <kvbench/testing/properties.hpp>

namespace kvbench::testing {
namespace {

/// Replaces all tokens by repetitions of the first `repeat` ones.
void repeat_tokens(HeadData& head, Index repeat) {
  for (Index j = repeat; j < head.total; ++j) {
    const Index from = j % repeat;
    std::copy_n(head.keys.begin() + from * head.d, head.d, head.keys.begin() + j * head.d);
    std::copy_n(head.values.begin() + from * head.dv, head.dv, head.values.begin() + j * head.dv);
  }
}

/// N and D are different sets: some entry has a weight in one sum only.
bool two_sets(const Result& result) {
  return std::ranges::any_of(result.entries, [](const auto& row) {
    return std::ranges::any_of(row, [](const Entry& entry) { return (entry.num != 0) != (entry.den != 0); });
  });
}

void finite(const std::vector<Result>& results) { require_finite(results); }
void unchanged(HeadData&) {}

/// Prefill and decode at small, half, full and larger budgets; every entry must satisfy the contract. Calls
/// check(results) for the results of each kv head.
template <class Change, class Check>
void run_all(Trial& trial, const char* words, const Shape& shape, Change change, Check check) {
  trial.describe(words);
  Heads heads = trial.heads(shape);
  for (HeadData& head : heads) change(head);
  for (const Index budget : {Index{1}, Index{2}, Index{3}, shape.n / 2 + 1, shape.n, shape.n + 5}) {
    const Instance instance = trial.try_open(heads, budget);
    if (!instance.session) continue;
    check(trial.prefill(instance, heads));
    for (const auto& head : trial.decode(instance, heads, 3)) check(head);
  }
}

}  // namespace

std::string short_contexts(Trial& trial) {
  run_all(trial, "a context of 1 token", {.n = 1, .decoded = 4}, unchanged, finite);
  run_all(trial, "a context of 2 tokens", {.n = 2, .decoded = 4}, unchanged, finite);
  run_all(trial, "a context of 3 tokens", {.n = 3, .decoded = 4}, unchanged, finite);
  return {};
}

std::string few_channels(Trial& trial) {
  run_all(trial, "one channel", {.n = 20, .decoded = 4, .d = 1, .dv = 1}, unchanged, finite);
  run_all(trial, "keys of 2 channels, values of 7", {.n = 20, .decoded = 4, .d = 2, .dv = 7}, unchanged, finite);
  return {};
}

std::string query_heads(Trial& trial) {
  run_all(trial, "1 query head", {.n = 20, .decoded = 4, .group = 1}, unchanged, finite);
  run_all(trial, "7 query heads", {.n = 20, .decoded = 4, .group = 7}, unchanged, finite);
  return {};
}

std::string equal_tokens(Trial& trial) {
  const Shape shape{.n = 40, .decoded = 5};
  run_all(
      trial, "two tokens in turn", shape, [](HeadData& head) { repeat_tokens(head, 2); }, finite);
  run_all(
      trial, "equal tokens", shape, [](HeadData& head) { repeat_tokens(head, 1); }, finite);
  run_all(
      trial, "equal keys", shape, [](HeadData& head) { head.keys.assign(head.keys.size(), 0); }, finite);
  return {};
}

std::string zero_values(Trial& trial) {
  const auto zero = [](HeadData& head) { head.values.assign(head.values.size(), 0); };
  run_all(trial, "values of 0", {.n = 40, .decoded = 5}, zero, [](const std::vector<Result>& results) {
    for (const Result& result : results)
      require(std::ranges::all_of(result.answers, [](float x) { return x == 0; }), "an answer is not 0");
  });
  return {};
}

std::string large_logits(Trial& trial) {
  const auto sharp = [](HeadData& head) {
    for (float& x : head.queries) x *= 200;
  };
  run_all(trial, "logits of several hundreds", {.n = 40, .decoded = 5}, sharp, [](const std::vector<Result>& results) {
    for (const Result& result : results) {
      // Where N and D are drawn independently and D lacks the peak that N holds, the quotient has no bound and can
      // overflow fp32.
      const bool valid = two_sets(result) ? std::ranges::none_of(result.answers, [](float x) { return std::isnan(x); })
                                          : all_finite(result.answers);
      require(valid, "an answer is no finite number");
    }
  });
  return {};
}

std::string sliding_windows(Trial& trial) {
  if (!trial.info().windowed) return "it does not declare `windowed`";
  run_all(
      trial, "a sliding window of 20 tokens", {.n = 40, .decoded = 5}, [](HeadData& head) { head.window = 20; },
      finite);
  return {};
}

}  // namespace kvbench::testing
