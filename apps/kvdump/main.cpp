// SPDX-License-Identifier: Apache-2.0
// kvdump: runs a GGUF model with llama.cpp and writes the queries, keys and values that the model used as a trace. Exit
// codes: 0 success, 1 the self check failed, 2 bad usage or bad input, 3 input/output or memory failure, 130
// interrupted. Errors are one sentence on stderr.
#include <exception>
#include <new>

#include <fmt/core.h>

#include <kvbench/core/read_files.hpp>

#include <apps/common/stop_signals.hpp>
#include <apps/kvdump/dump.hpp>
#include <apps/kvdump/options.hpp>
#include <apps/llama/passes.hpp>

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
    app::wait_for_stop_signals("kvdump");
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
                "out of memory: the captured arrays of a prompt are in memory until it is finished. Dump fewer "
                "--layers, fewer --queries or a shorter --ctx.");
  } catch (const std::exception& error) {
    return fail(2, error.what());
  }
}

}  // namespace
}  // namespace kvbench::kvdump

int main(int argc, char** argv) {
  kvbench::protect_read_files();
  kvbench::llama::wait_passively(argv);
  return kvbench::kvdump::run(argc, argv);
}
