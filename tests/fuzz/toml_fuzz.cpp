// SPDX-License-Identifier: Apache-2.0
// libFuzzer target: any text is a sweep file whose runs expand to requests, for sweeps and for kveval, or gives Error.
#include <cstdint>
#include <string>

#include <kvbench/sweep/expand.hpp>

std::size_t inputs_read = 0;

namespace {

/// Whether the runs expand to few requests. What takes longer is not a fault.
bool is_small(const kvbench::config::SweepRun& run) {
  return run.traces.size() * run.devices.size() * run.protocols.size() < 100;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const auto sweep = kvbench::config::read_sweep("s.toml", std::string(reinterpret_cast<const char*>(data), size));
    for (const kvbench::config::SweepRun& run : sweep.runs) {
      if (is_small(run)) kvbench::sweep::expand(run);
    }
    ++inputs_read;
  } catch (const kvbench::Error&) {
  }
  return 0;
}
