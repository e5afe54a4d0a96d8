// SPDX-License-Identifier: Apache-2.0
#include <kvbench/replay/run/device_memory.hpp>

#include <fmt/format.h>

namespace kvbench::replay {

namespace {

/// The number of tokens at which the memory held and requested would have fitted: both grow in proportion to the
/// tokens.
Index fitting_tokens(const OutOfDeviceMemory& fault, Index tokens) {
  const DeviceMemory& memory = fault.memory();
  const double wanted = static_cast<double>(memory.held) + static_cast<double>(fault.asked());
  return static_cast<Index>(static_cast<double>(tokens) * static_cast<double>(memory.limit) / wanted);
}

}  // namespace

OutOfDeviceMemory explained(const OutOfDeviceMemory& fault, const WorkItemSize& item) {
  std::string advice;
  if (item.threads > 1) {
    advice = fmt::format("{} work items are computed at the same time; set `threads` to 1.", item.threads);
  } else if (item.heads > 1) {
    advice = fmt::format(
        "Methods that see the whole layer need all {} kv heads of it at once; leave these methods out, or set "
        "`backend` to cpu.",
        item.heads);
  } else {
    advice = "Use a trace of fewer tokens (kvdump --ctx), leave methods out, or set `backend` to cpu.";
  }
  return {fault.asked(), fault.memory(),
          fmt::format(
              "{} The current work item has {} tokens and {} kv head{}; up to about {} tokens would have fitted. {}",
              fault.what(), item.tokens, item.heads, item.heads == 1 ? "" : "s", fitting_tokens(fault, item.tokens),
              advice)};
}

}  // namespace kvbench::replay
