// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <kvbench/replay/plan/request.hpp>

namespace kvbench::loop {

/// The request of one configuration: a method at a budget with a seed.
struct LoopConfiguration {
  replay::MethodChoice method;
  Budget budget = Budget::parse("25%");
  std::uint32_t seed = 0;

  /// The request with this configuration alone, under a protocol of a running model: stream if the request has it, else
  /// decode. Throws Error where the method belongs to a trace.
  replay::ReplayRequest in(replay::ReplayRequest request) const {
    if (!method.info->trace_sha256.empty())
      throw Error("{} belongs to a trace, and a model that runs has other contexts; replay it on its trace",
                  method.info->name);
    if (request.protocol != replay::Protocol::stream) request.protocol = replay::Protocol::decode;
    request.methods = {method};
    request.budgets = {budget};
    request.seeds = {seed};
    return request;
  }
};

}  // namespace kvbench::loop
