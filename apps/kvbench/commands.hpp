// SPDX-License-Identifier: Apache-2.0
// One function per subcommand, which adds its flags to the application and returns the function that runs it.
#pragma once

#include <apps/common/rows/commands.hpp>

namespace kvbench::app {

Command add_allocate(CLI::App& app);
Command add_bundle(CLI::App& app);
Command add_cache(CLI::App& app);
Command add_cite(CLI::App& app);
Command add_claim(CLI::App& app);
Command add_compare(CLI::App& app);
Command add_completion(CLI::App& app);
Command add_doctor(CLI::App& app);
Command add_eval(CLI::App& app);
Command add_info(CLI::App& app);
Command add_man(CLI::App& app);
Command add_merge(CLI::App& app);
Command add_methods(CLI::App& app);
Command add_replay(CLI::App& app);
Command add_report(CLI::App& app);
Command add_sweep(CLI::App& app);
Command add_synth(CLI::App& app);
Command add_validate(CLI::App& app);
Command add_verify(CLI::App& app);

}  // namespace kvbench::app
