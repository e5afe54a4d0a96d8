// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <kvbench/replay/plan/request.hpp>

namespace kvbench::loop {

/// The request of one configuration: a method at a budget with a seed.
struct LoopConfiguration {
  replay::MethodChoice method;
  Budget budget = Budget::parse("25%");
  std::uint32_t seed = 0;

  /// The request with this configuration alone, under the protocol of a running model.
  replay::ReplayRequest in(replay::ReplayRequest request) const {
    request.protocol = replay::Protocol::decode;
    request.methods = {method};
    request.budgets = {budget};
    request.seeds = {seed};
    return request;
  }
};

}  // namespace kvbench::loop
