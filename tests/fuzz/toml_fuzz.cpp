// SPDX-License-Identifier: Apache-2.0
// libFuzzer target: any text is a sweep file, or gives Error.
#include <cstdint>
#include <string>

#include <kvbench/config/sweep.hpp>

std::size_t inputs_read = 0;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    kvbench::config::read_sweep("s.toml", std::string(reinterpret_cast<const char*>(data), size));
    ++inputs_read;
  } catch (const kvbench::Error&) {
  }
  return 0;
}
