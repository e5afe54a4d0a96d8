// SPDX-License-Identifier: Apache-2.0
// kvdump: runs a GGUF model with llama.cpp and writes the queries, keys and values that it really used as a trace. Exit code: 0
// done, 1 the self check failed, 2 bad usage or input, 3 input/output or memory, 130 interrupted. Errors are one sentence on
// stderr.
#include <cstdlib>
#include <exception>
#include <new>

#include <fmt/core.h>
#include <unistd.h>

#include "dump.hpp"
#include "interrupt.hpp"
#include "options.hpp"

namespace kvbench::kvdump {
namespace {

int fail(int code, const char* message) {
  fmt::print(stderr, "kvdump: {}\n", message);
  return code;
}

int run(int argc, char** argv) {
  try {
    const auto parsed = parse_options(argc, argv);
    if (!parsed.options) return parsed.exit_code;
    stop_on_signals();
    dump(*parsed.options);
    return 0;
  } catch (const CheckFailed& error) {
    return fail(1, error.what());
  } catch (const Interrupted&) {
    return fail(130, "interrupted; nothing was written");
  } catch (const IoError& error) {
    return fail(3, error.what());
  } catch (const std::bad_alloc&) {
    return fail(3,
                "out of memory: the captured arrays are held until their prompt is done. Dump fewer --layers, fewer "
                "--queries or a shorter --ctx.");
  } catch (const std::exception& error) {
    return fail(2, error.what());
  }
}

}  // namespace
}  // namespace kvbench::kvdump

int main(int argc, char** argv) {
  // libgomp reads this once, before main(). Spinning barriers collapse where other processes use the cores: 240 ms a token
  // instead of 20 measured.
  if (std::getenv("OMP_WAIT_POLICY") == nullptr) {
    setenv("OMP_WAIT_POLICY", "passive", 1);
    execv("/proc/self/exe", argv);  // where it fails, the dump is only slower
  }
  return kvbench::kvdump::run(argc, argv);
}
