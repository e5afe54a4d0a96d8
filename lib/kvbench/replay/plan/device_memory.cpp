// SPDX-License-Identifier: Apache-2.0
#include <kvbench/replay/plan/device_memory.hpp>

#include <fmt/format.h>

namespace kvbench {

namespace {

/// Slabs and scratch grow with the tokens: the context at which what was held and asked for would have fitted.
Index fitting_tokens(const OutOfDeviceMemory& fault, Index tokens) {
  const DeviceMemory& memory = fault.memory();
  const double wanted = static_cast<double>(memory.held) + static_cast<double>(fault.asked());
  return static_cast<Index>(static_cast<double>(tokens) * static_cast<double>(memory.limit) / wanted);
}

}  // namespace

OutOfDeviceMemory explained(const OutOfDeviceMemory& fault, const UnitSize& unit) {
  std::string advice;
  if (unit.workers > 1) {
    advice = fmt::format("{} heads or layers are in flight at once; set `threads` to 1.", unit.workers);
  } else if (unit.heads > 1) {
    advice = fmt::format(
        "The {} kv heads of a layer are held together for methods that see the whole layer; leave those methods out, or set "
        "`backend` to cpu.",
        unit.heads);
  } else {
    advice = "Use a trace of fewer tokens (kvdump --ctx), leave methods out, or set `backend` to cpu.";
  }
  return {fault.asked(), fault.memory(),
          fmt::format("{} The unit at work has {} tokens and {} kv head{}; up to about {} tokens would have fitted. {}",
                      fault.what(), unit.tokens, unit.heads, unit.heads == 1 ? "" : "s", fitting_tokens(fault, unit.tokens),
                      advice)};
}

}  // namespace kvbench
