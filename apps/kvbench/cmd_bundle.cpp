// SPDX-License-Identifier: Apache-2.0
// `kvbench bundle`, `verify`, `cite` and `claim` are programs of the Python package, whose library has archives and
// digests.
#include <fmt/format.h>

#include <apps/common/command_line.hpp>
#include <apps/kvbench/own_program.hpp>

namespace kvbench::app {
namespace {

Command python_command(CLI::App& app, const char* name, const char* program, const char* description) {
  CLI::App* flags = app.add_subcommand(name, description);
  flags->footer(fmt::format("The flags are those of {}, which is not in PATH here. {}", program, package_remedy));
  return own_command(flags, {.program = program, .remedy = package_remedy});
}

}  // namespace

Command add_bundle(CLI::App& app) {
  return python_command(app, "bundle", "kvbench-bundle",
                        "Put tables of results into one file that others recompute in part");
}

Command add_verify(CLI::App& app) {
  return python_command(app, "verify", "kvbench-verify", "Recompute a part of a bundle, and say what was checked");
}

Command add_cite(CLI::App& app) {
  return python_command(app, "cite", "kvbench-cite",
                        "Write a bundle as BibTeX, or as llama.cpp, Every Eval Ever or Hugging Face ask for it");
}

Command add_claim(CLI::App& app) {
  return python_command(app, "claim", "kvbench-claim", "Test a claim that was registered before it was measured");
}

}  // namespace kvbench::app
