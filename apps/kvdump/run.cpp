// SPDX-License-Identifier: Apache-2.0
#include "run.hpp"

#include <exception>
#include <new>

#include <fmt/core.h>

#include "dump.hpp"
#include "interrupt.hpp"
#include "options.hpp"

namespace kvbench::kvdump {
namespace {

int fail(int code, const char* message) {
  fmt::print(stderr, "kvdump: {}\n", message);
  return code;
}

}  // namespace

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

}  // namespace kvbench::kvdump
