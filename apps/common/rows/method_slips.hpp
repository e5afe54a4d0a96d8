// SPDX-License-Identifier: Apache-2.0
// What is said about methods and their parameters that stand in the wrong place.
#pragma once

#include <string>

#include <CLI/CLI.hpp>

namespace kvbench::app {

/// The flags whose values are methods, in those commands that have them.
inline constexpr const char* flags_of_methods[] = {"--method", "--menu", "--a", "--b"};

/// Whether a file that a user names does not exist, and is a method instead. What cannot be looked at is a file.
bool is_method(const std::string& file);
/// Throws Error where the name of a method or a budget stands where a trace is expected. `methods`: the flag of
/// methods.
void refuse_value_of_flag(const std::string& path, const char* methods);

/// What to write instead of a flag such as --window that is a parameter of methods which were given: " window is a
/// parameter of a method; write --method "snapkv[window=16]"."; and instead of -knorm in `-m all -knorm`. "" for other
/// flags. A FlagAdvice.
std::string method_advice(const CLI::App& parsed, const std::string& flag, const std::string& value);

}  // namespace kvbench::app
