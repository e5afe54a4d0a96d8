// SPDX-License-Identifier: Apache-2.0
// kvbench-validate, which `kvbench validate` starts: the checks of the papers, the faults that show what they catch,
// and the golden rows. It speaks as the command of kvbench that it is.
#include <fmt/format.h>

#include <kvbench/core/version.hpp>

#include <apps/validate/commands.hpp>

int main(int argc, char** argv) {
  using namespace kvbench;
  return app::run_commands([&](std::string& given) {
    CLI::App app("Tests theorems and claims of papers about KV-cache compression.", "kvbench");
    app.set_version_flag("--version", fmt::format("kvbench-validate {} ({})", version(), commit()));
    const app::Command validate = app::add_validate(app);
    const app::Command commands[] = {app::add_golden(*validate.flags), validate};
    app::Words words(argv + 1, argv + argc);
    if (words == app::Words{"help"}) words = {"--help"};
    if (words != app::Words{"--version"}) words.insert(words.begin(), "validate");
    return app::run_words(app, commands, words, given);
  });
}
