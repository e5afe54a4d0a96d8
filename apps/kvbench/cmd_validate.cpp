// SPDX-License-Identifier: Apache-2.0
// kvbench links no check: `kvbench validate` runs the program kvbench-validate.
#include <memory>

#include <apps/kvbench/own_program.hpp>
#include <apps/validate/flags/flags.hpp>

namespace kvbench::app {

Command add_validate(CLI::App& app) {
  auto options = std::make_shared<std::pair<ValidateFlags, GoldenFlags>>();
  CLI::App* flags = declare_validate(app, options->first);
  declare_golden(*flags, options->second);
  return own_command(flags, {.program = "kvbench-validate", .remedy = laboratory_remedy, .help = [flags, options] {
                               print(flags->help(flags->get_parent()->get_name()));
                               return static_cast<int>(done);
                             }});
}

}  // namespace kvbench::app
