// SPDX-License-Identifier: Apache-2.0
// kvdump: runs a GGUF model with llama.cpp and writes the queries, keys and values that the model used as a trace. Exit
// codes: 0 success, 1 the self check failed, 2 bad usage or bad input, 3 input/output or memory failure, 130
// interrupted. Errors are one sentence on stderr.
#include <apps/common/program.hpp>
#include <apps/common/stop_signals.hpp>
#include <apps/kvdump/dump.hpp>
#include <apps/kvdump/options.hpp>
#include <apps/llama/passes.hpp>

namespace {

int run(int argc, char** argv) {
  const auto parsed = kvbench::kvdump::parse_options(argc, argv);
  if (!parsed.options) return parsed.exit_code;
  kvbench::app::wait_for_stop_signals("kvdump");
  try {
    kvbench::kvdump::dump(*parsed.options);
  } catch (const kvbench::kvdump::CheckFailed& error) {
    kvbench::app::say("kvdump", error.what());
    return kvbench::app::rows_failed;
  }
  return kvbench::app::done;
}

}  // namespace

int main(int argc, char** argv) {
  kvbench::llama::wait_passively(argv);
  const kvbench::app::Program program{
      .name = "kvdump",
      .nothing_written = "nothing was written",
      .out_of_memory =
          "the captured arrays of a prompt are in memory until it is finished. Dump fewer --layers, fewer "
          "--queries or a shorter --ctx."};
  return kvbench::app::run_program(program, [&] { return run(argc, argv); });
}
