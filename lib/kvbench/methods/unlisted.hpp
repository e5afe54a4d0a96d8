// SPDX-License-Identifier: Apache-2.0
// Names that no row of the registry has: compositions A+Q, wrapped methods W(A) and methods of files.
#pragma once

#include <string>
#include <utility>

#include <kvbench/methods/registry.hpp>

namespace kvbench::methods {

/// find_method() of these. Throws Error, with what to write instead, where the name is of no method.
const MethodInfo& find_unlisted(std::string_view name, FindMethodOfFile of_file);
/// family_of() of these.
std::string_view family_of_unlisted(std::string_view method);
/// Makes family_of() and runs_in() know a text by which results show a method, from here on. No method has it as its
/// name. `params`: those that the text stands for too.
void show_as(const std::string& text, std::string_view method, std::string_view params);
/// What a text of show_as() stands for; any other name for itself.
std::pair<std::string, std::string> shown_by(std::string_view text);

/// Returns the method in Python of this name, which lives as long as the program. Throws Error where there is none.
using FindPythonMethod = const MethodInfo& (*)(const std::string& name);
/// Connects find_method() with a Python, before any thread calls it. Without one it refuses methods in Python.
void set_python(FindPythonMethod find);

}  // namespace kvbench::methods
