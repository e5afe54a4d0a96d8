// SPDX-License-Identifier: Apache-2.0
// Flags that kvbench and kveval declare in the same words.
#pragma once

#include <optional>
#include <string>

#include <CLI/CLI.hpp>

#include <kvbench/replay/plan/request.hpp>

namespace kvbench::app {

/// Says on stderr where --summary, which prints an answer beside a file, is given without -o FILE.
void check_summary_flag(const CLI::App& flags, const std::string& output);

/// Sets the format that was not given to that which the name of the output implies; leaves it empty where it implies
/// none. Throws Error where the name is of a format in which no table is written.
void imply_format(std::string& format, const std::string& output, const char* flag = "-o");

/// Throws Error where an output that is no table has the name of one, or of another format than `right`, its ending;
/// `what` says what it is.
void require_ending(const char* flag, const std::string& output, std::string_view what, std::string_view right);

/// Adds --format and -o, for commands that write a table.
void add_form_flags(CLI::App* flags, std::string& format, std::string& output);
/// Adds --label METHOD=TEXT. `where`: what shows the texts.
void add_label_flag(CLI::App* flags, std::vector<std::string>& labels, const std::string& where);
/// Says on stderr that --label is for what people read, and what shows that.
void note_unread_labels(const CLI::App& flags, const std::string& remedy);
/// Adds --isa, whose value stays absent where it is not given. Parsing throws Error where the instruction set is not
/// available.
void add_isa_flag(CLI::App* flags, std::optional<Isa>& isa);

}  // namespace kvbench::app
