// SPDX-License-Identifier: Apache-2.0
// Budgets that are replayed together give the same answers as each of them alone: they share work, not results.
#include <doctest/doctest.h>

#include <kvbench/methods/registry.hpp>

#include <support/small_trace.hpp>

using namespace kvbench;
using namespace kvbench::methods;
using namespace kvbench::replay;
using namespace kvbench::testing;

namespace {

ReplayRequest request_for(Protocol protocol, std::vector<Index> budgets, bool standalone) {
  ReplayRequest request;
  for (const MethodInfo& info : kvbench::methods::all_methods()) request.methods.push_back({&info, info.bind({})});
  request.budgets.clear();
  for (const Index budget : budgets) request.budgets.push_back(Budget::parse(std::to_string(budget)));
  request.seeds = {0, 1};
  request.protocol = protocol;
  request.standalone = standalone;
  return request;
}

/// Largest difference of any metric of two results, relative to 1.
double difference(const ConfigurationResult& a, const ConfigurationResult& b) {
  REQUIRE(a.metrics.size() == b.metrics.size());
  double largest = 0;
  for (std::size_t r = 0; r < a.metrics.size(); ++r) {
    for (const Metric k : all_metrics()) {
      const float x = a.metrics[r][k], y = b.metrics[r][k];
      if (x == y || (std::isnan(x) && std::isnan(y))) continue;
      largest = std::max(largest, static_cast<double>(std::fabs(x - y) / std::max(1.0f, std::fabs(x))));
    }
  }
  return largest;
}

void check_same(const ReplayResults& together, const ReplayResults& other, const Configuration& key,
                std::size_t other_budget, bool alone) {
  for (std::size_t h = 0; h < together.heads.size(); ++h) {
    const auto at = [&](const ReplayResults& results, std::size_t budget) -> const ConfigurationResult& {
      for (std::size_t c = 0; c < results.configurations.size(); ++c) {
        const Configuration& k = results.configurations[c];
        if (k.method == key.method && k.seed == key.seed && k.budget == budget) return results.heads[h].results[c];
      }
      throw std::logic_error("no such configuration");
    };
    const ConfigurationResult &a = at(together, key.budget), &b = at(other, other_budget);
    CHECK(a.status == b.status);
    CHECK(a.reason == b.reason);
    CHECK(a.kept_tokens == b.kept_tokens);
    CHECK(difference(a, b) < 2e-4);
    if (alone) CHECK(a.attend_flops <= b.attend_flops);  // scores that budgets share count once
  }
}

}  // namespace

TEST_CASE("every method gives the same answers at several budgets as at each alone, and as with standalone") {
  const SmallTrace trace({.num_tokens = 90,
                          .prompt_tokens = 70,
                          .num_queries = 90,
                          .layers = 2,
                          .query_heads = 4,
                          .kv_heads = 2,
                          .head_dim = 8,
                          .value_dim = 16,
                          .clusters = 6,
                          .key_norm = 3});
  const std::vector<Index> budgets = {12, 48, 24, 36};  // unordered
  for (const Protocol protocol : {Protocol::prefill, Protocol::decode}) {
    const ReplayResults together =
        replay::replay(trace.reader(), request_for(protocol, budgets, false), {.threads = 1});
    const ReplayResults standalone =
        replay::replay(trace.reader(), request_for(protocol, budgets, true), {.threads = 1});
    for (const Configuration& key : together.configurations) {
      CAPTURE(methods::all_methods()[key.method].name);
      CAPTURE(budgets[key.budget]);
      check_same(together, standalone, key, key.budget, false);
    }
    for (std::size_t b = 0; b < budgets.size(); ++b) {
      const ReplayResults alone =
          replay::replay(trace.reader(), request_for(protocol, {budgets[b]}, false), {.threads = 1});
      for (const Configuration& key : together.configurations) {
        if (key.budget != b) continue;
        CAPTURE(methods::all_methods()[key.method].name);
        CAPTURE(budgets[b]);
        check_same(together, alone, key, 0, true);
      }
    }
  }
}
