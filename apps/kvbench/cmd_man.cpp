// SPDX-License-Identifier: Apache-2.0
// Manual pages, from the flags that the commands declare; of programs whose flags kvbench does not know, from the page
// of their help.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <iterator>

#include <fmt/chrono.h>

#include <kvbench/core/error.hpp>
#include <kvbench/core/version.hpp>

#include <apps/common/command_line.hpp>
#include <apps/kvbench/help_topics.hpp>
#include <apps/kvbench/own_program.hpp>

namespace kvbench::app {
namespace {

/// A text as roff shows it: no backslash, and no dot or quote at the begin of a line, is a command.
std::string roff(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if ((c == '.' || c == '\'') && (out.empty() || out.back() == '\n')) out += "\\&";
    out += c == '\\' ? "\\e" : c == '-' ? "\\-" : std::string(1, c);
  }
  return out;
}

/// The flags of a command, as its help shows them, and the examples below them. A page has exit codes once.
std::string body(const CLI::App& command) {
  const auto shown = std::dynamic_pointer_cast<CLI::Formatter>(command.get_formatter());
  std::string out, footer = command.get_footer();
  for (const bool positional : {true, false}) {
    for (const CLI::Option* option : command.get_options()) {
      if (option->get_positional() == positional && !option->get_group().empty())
        out += fmt::format(".TP\n\\fB{}\\fR{}\n{}\n", roff(shown->make_option_name(option, positional)),
                           roff(shown->make_option_opts(option)), roff(option->get_description()));
    }
  }
  if (const std::size_t codes = footer.find(exit_codes); codes != footer.npos) footer.erase(codes);
  bool indented = false;
  for (const std::string& line : CLI::detail::split("\n" + footer, '\n')) {
    if (line.starts_with(' ') != indented || line.empty())
      out += line.starts_with(' ') ? ".PP\n.nf\n" : indented ? ".fi\n.PP\n" : "";
    indented = line.starts_with(' ');
    if (!line.empty()) out += roff(line) + "\n";
  }
  return out + (indented ? ".fi\n" : "");
}

std::string head(const std::string& program, const std::string& description) {
  const char* const epoch = std::getenv("SOURCE_DATE_EPOCH");  // reproducible-builds.org
  const std::time_t now = epoch != nullptr ? std::atoll(epoch) : std::time(nullptr);
  return fmt::format(".TH {0} 1 {1:%Y-%m-%d} \"kvbench {2}\" \"kvbench\"\n.ad l\n.SH NAME\n{0} \\- {3}\n",
                     roff(program), fmt::gmtime(now), version(), roff(description));
}

/// A program whose commands kvbench knows: itself, or one that is a command of it.
std::string page(const CLI::App& command, const std::string& program) {
  std::string out = head(program, command.get_description()) + ".SH OPTIONS\n" + body(command);
  for (const auto& [name, flags] : described_commands(command))
    out += fmt::format(".SH {} {}\n{}.\n{}", roff(program), roff(name), roff(flags->get_description()), body(*flags));
  return out + ".SH EXIT STATUS\n" + roff(exit_codes) + "\n";
}

std::string page_of_help(const std::string& program) {
  const ProgramAnswer answer = ask_program(program, {"--help"}, 60);
  if (answer.path.empty() || !answer.fault.empty())
    throw Error("{0}: {0} --help {1}", program, answer.path.empty() ? "is not there to be asked" : answer.fault);
  const std::string text = answer.text.substr(0, answer.text.find_last_not_of('\n') + 1);
  return fmt::format("{}.SH DESCRIPTION\n.nf\n{}\n.fi\n", head(program, "program of kvbench"), roff(text));
}

}  // namespace

Command add_man(CLI::App& app) {
  CLI::App* flags = app.add_subcommand("man", "Print a manual page, which `make install` installs");
  auto program = std::make_shared<std::string>("kvbench");
  std::vector<std::string> programs = {"kvbench", "kvbench-validate", "kveval"};
  std::ranges::copy(programs_with_help, std::back_inserter(programs));
  flags->add_option("program", *program, "The program (default: kvbench)")->check(one_of(programs));
  return {flags, [&app, program] {
            print(*program == "kvbench"            ? page(app, *program)
                  : *program == "kvbench-validate" ? page(*app.get_subcommand("validate"), *program)
                  : *program == "kveval"           ? page(*app.get_subcommand("eval"), *program)
                                                   : page_of_help(*program));
            return static_cast<int>(done);
          }};
}

}  // namespace kvbench::app
