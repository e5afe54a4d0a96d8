// SPDX-License-Identifier: Apache-2.0
// kveval: runs compression methods inside a GGUF model with llama.cpp, and measures what they do to its output. Exit
// codes: 0 success, 1 a configuration failed, 2 bad usage or bad input, 3 input/output or memory failure, 130
// interrupted. Errors are one sentence on stderr.
#include <exception>
#include <new>

#include <fmt/core.h>

#include <kvbench/core/error.hpp>
#include <kvbench/core/read_files.hpp>

#include <apps/common/flag_names.hpp>
#include <apps/common/freed_memory.hpp>
#include <apps/common/stop_signals.hpp>
#include <apps/kveval/evaluate.hpp>
#include <apps/kveval/options.hpp>
#include <apps/llama/passes.hpp>

namespace kvbench::kveval {
namespace {

int fail(int code, const char* message) {
  fmt::print(stderr, "kveval: {}\n", app::with_flags(message, "eval"));
  return code;
}

int run(int argc, char** argv) {
  try {
    const auto parsed = parse_options(argc, argv);
    if (!parsed.options) return parsed.exit_code;
    app::wait_for_stop_signals("kveval");
    return evaluate(*parsed.options);
  } catch (const Interrupted&) {
    return fail(130, "interrupted; no output was written");
  } catch (const IoError& error) {
    return fail(3, error.what());
  } catch (const std::bad_alloc&) {
    return fail(3, "out of memory; give a shorter --context, fewer --layers or fewer --threads");
  } catch (const std::exception& error) {
    return fail(2, error.what());
  }
}

}  // namespace
}  // namespace kvbench::kveval

int main(int argc, char** argv) {
  kvbench::protect_read_files();
  kvbench::llama::wait_passively(argv);
  kvbench::app::keep_freed_memory();
  return kvbench::kveval::run(argc, argv);
}
