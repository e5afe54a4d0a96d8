// SPDX-License-Identifier: Apache-2.0
// Sweeps over small traces.
#pragma once

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
    return trace::test::message_of<Error>([&] { plan(text); });
  }
};

}  // namespace kvbench::testing
