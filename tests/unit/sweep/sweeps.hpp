// SPDX-License-Identifier: Apache-2.0
// Sweeps over small traces, and results of sweeps that must be equal.
#pragma once

#include <cmath>

#include <doctest/doctest.h>

#include <kvbench/sweep/collect.hpp>
#include <kvbench/sweep/plan.hpp>
#include <support/small_trace.hpp>
#include <unit/config/files.hpp>

namespace kvbench::testing {

/// A folder with the small trace t.h5 (40 tokens, 28 of them the context, 2 layers, 2 kv heads) and a longer one, u.h5.
class Sweeps : public SweepFiles {
 public:
  Sweeps() {
    trace::synthesize(folder / "t.h5", small_options());
    trace::SynthOptions longer = small_options();
    longer.num_tokens = 60;
    trace::synthesize(folder / "u.h5", longer);
  }
  sweep::SweepPlan plan(const std::string& text) const { return sweep::plan_sweep(read(text)); }
  std::string plan_refusal(const std::string& text) const {
    return message_of<Error>([&] { plan(text); });
  }
};

inline bool same(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

inline void check_same(const sweep::SweepResults& a, const sweep::SweepResults& b) {
  REQUIRE(a.records.size() == b.records.size());
  REQUIRE(a.measures.size() == b.measures.size());
  for (std::size_t i = 0; i < a.records.size(); ++i) {
    const replay::Record &x = a.records[i], &y = b.records[i];
    CHECK(x.run == y.run);
    CHECK(x.method == y.method);
    CHECK(x.order == y.order);
    CHECK(x.query == y.query);
    CHECK(x.kept_tokens == y.kept_tokens);
    CHECK(x.bytes.kv == y.bytes.kv);
    CHECK(x.reason == y.reason);
    for (const replay::Metric m : replay::all_metrics()) {
      CHECK(same(x.metrics[m].mean, y.metrics[m].mean));
      CHECK(same(x.metrics[m].lo, y.metrics[m].lo));
    }
  }
  for (std::size_t i = 0; i < a.measures.size(); ++i) CHECK(a.measures[i].value == b.measures[i].value);
}

}  // namespace kvbench::testing
