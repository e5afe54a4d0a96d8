// SPDX-License-Identifier: Apache-2.0
// Manual pages, from the flags that the commands declare; of programs whose flags kvbench does not know, from the page
// of their help.
#include <algorithm>
#include <cctype>
#include <chrono>
#include <cstdlib>
#include <iterator>

#include <fmt/chrono.h>

#include <kvbench/core/error.hpp>
#include <kvbench/core/version.hpp>

#include <apps/common/command_line.hpp>
#include <apps/kvbench/ask_program.hpp>
#include <apps/kvbench/commands.hpp>
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

/// A text whose lines are joined, but for those that are indented.
std::string paragraphs(const std::string& text) {
  std::string out;
  bool as_they_stand = false;
  for (const std::string& line : CLI::detail::split(text, '\n')) {
    if (line.empty()) continue;
    const bool indented = line.starts_with(' ');
    if (indented != as_they_stand) out += indented ? ".PP\n.nf\n" : ".fi\n.PP\n";
    as_they_stand = indented;
    out += roff(line) + "\n";
  }
  return out + (as_they_stand ? ".fi\n" : "");
}

/// The flags of a command, with values and defaults as its help shows them, and what stands below them there but for
/// the exit codes, which a page has once.
std::string body(const CLI::App& command) {
  const auto shown = std::dynamic_pointer_cast<CLI::Formatter>(command.get_formatter());
  std::string positionals, flags, footer = command.get_footer();
  for (const CLI::Option* option : command.get_options()) {
    if (option->get_group().empty()) continue;  // hidden
    const bool positional = option->get_positional();
    (positional ? positionals : flags) +=
        fmt::format(".TP\n\\fB{}\\fR{}\n{}\n", roff(shown->make_option_name(option, positional)),
                    roff(shown->make_option_opts(option)), roff(shown->make_option_desc(option)));
  }
  if (const std::size_t codes = footer.find(exit_codes); codes != footer.npos) footer.erase(codes);
  const std::string below = paragraphs(footer);
  return positionals + flags + (below.empty() ? "" : ".PP\n" + below);
}

std::string head(const std::string& program, const std::string& description) {
  const char* const epoch = std::getenv("SOURCE_DATE_EPOCH");  // reproducible-builds.org
  const std::time_t now = epoch != nullptr ? std::atoll(epoch) : std::time(nullptr);
  std::string title = program;
  std::ranges::transform(title, title.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return fmt::format(".TH {} 1 {:%Y-%m-%d} \"kvbench {}\" \"kvbench\"\n.SH NAME\n{} \\- {}\n", roff(title),
                     fmt::gmtime(now), version(), roff(program), roff(description));
}

std::string tail() {
  const std::string codes = exit_codes;
  return fmt::format(".SH EXIT STATUS\n{}\n.SH SEE ALSO\nThe pages of docs in share/kvbench; \\fBkvbench help\\fR\n",
                     roff(codes.substr(codes.find(": ") + 2)));
}

std::string page_of_kvbench(const CLI::App& app) {
  std::string out = head("kvbench", "benchmark of KV-cache compression") +
                    ".SH SYNOPSIS\n\\fBkvbench\\fR COMMAND [OPTIONS]\n.SH DESCRIPTION\n" + roff(app.get_description()) +
                    "\n" + body(app) + ".SH COMMANDS\n";
  for (const auto& [name, command] : described_commands(app))
    out += fmt::format(".SS kvbench {}\n{}.\n{}", roff(name), roff(command->get_description()), body(*command));
  return out + tail();
}

/// A program that is also a command of kvbench.
std::string page_of_command(const CLI::App& app, const std::string& program, const std::string& name) {
  const CLI::App* const command = app.get_subcommand(name);
  std::string out = head(program, command->get_description()) + fmt::format(
                                                                    ".SH SYNOPSIS\n\\fB{}\\fR [OPTIONS]\n"
                                                                    ".SH OPTIONS\n{}",
                                                                    roff(program), body(*command));
  for (const auto& [below, flags] : described_commands(*command))
    out += fmt::format(".SH {} {}\n{}.\n{}", roff(program), roff(below), roff(flags->get_description()), body(*flags));
  return out + tail();
}

/// The first sentence of a page of help.
std::string description_in(const std::string& help) {
  std::string usage = "usage", begin = help.substr(0, usage.size());
  std::ranges::transform(begin, begin.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const std::size_t blank = begin == usage ? help.find("\n\n") : help.npos;
  const std::string text = blank == help.npos ? help : help.substr(blank + 2);
  std::string line = text.substr(0, std::min(text.find(". "), text.find("\n\n")));
  std::ranges::replace(line, '\n', ' ');
  return line;
}

std::string page_of_help(const std::string& program) {
  const std::string path = path_of_program(program);
  if (path.empty()) throw Error("{}: there is no such program beside kvbench or in PATH", program);
  const ProgramAnswer answer = ask_program(path, {"--help"}, std::chrono::seconds(60));
  if (!answer.fault.empty()) throw Error("{} --help {}", path, answer.fault);
  const std::string text = answer.text.substr(0, answer.text.find_last_not_of('\n') + 1);
  return fmt::format("{}.SH DESCRIPTION\n.nf\n{}\n.fi\n", head(program, description_in(text)), roff(text));
}

}  // namespace

Command add_man(CLI::App& app) {
  CLI::App* flags = app.add_subcommand("man", "Print a manual page");
  auto program = std::make_shared<std::string>("kvbench");
  std::vector<std::string> programs = {"kvbench", "kvbench-validate", "kveval"};
  std::ranges::copy(programs_with_help, std::back_inserter(programs));
  flags->add_option("program", *program, "The program (default: kvbench)")->check(one_of(programs));
  flags->footer("`make install` installs the pages of the programs that it installs.");
  return {flags, [&app, program] {
            print(*program == "kvbench"            ? page_of_kvbench(app)
                  : *program == "kvbench-validate" ? page_of_command(app, *program, "validate")
                  : *program == "kveval"           ? page_of_command(app, *program, "eval")
                                                   : page_of_help(*program));
            return static_cast<int>(done);
          }};
}

}  // namespace kvbench::app
