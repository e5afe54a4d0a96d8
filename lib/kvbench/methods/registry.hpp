// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include <kvbench/methods/contract/wrapper.hpp>

namespace kvbench::methods {

/// Every method, in the order of the table in registry.cpp, which `kvbench methods`, --help, docs and the property
/// tests follow.
std::span<const MethodInfo> all_methods();

/// Every wrapper: W in W(A).
std::span<const Wrapper> all_wrappers();

/// A method and the settings that differ from its defaults.
struct MethodSettings {
  const MethodInfo* info = nullptr;
  std::vector<Assignment> settings;
};
/// The rows of a set of methods that one name stands for, none where it stands for no set. `all`: every method but
/// oracle-error, duo and duo@kvpress with its defaults, then its variants; then compositions. `families`: the usual
/// methods of every family whose caches can be small, with their defaults, and the same compositions; few enough for
/// several budgets and for runs inside a model. The name of an engine: what it runs (rows_of_engine()).
std::vector<MethodSettings> rows_of_set(std::string_view name);

/// "eviction", "merging", ...
std::string_view name_of(Kind kind);
/// The kind of a method by its name in results, of W(A) that of A, "composition" of A+Q and of plans, "own" of methods
/// in Python, and "other" of names that this version does not know.
std::string_view family_of(std::string_view method);

/// Finds a method that a file defines, by its name (file_name.hpp).
using FindMethodOfFile = const MethodInfo& (*)(std::string_view name);

/// The method of this name or alias, one that is written in Python (file_name.hpp), the composition A+Q of two or a
/// method W(A) inside a wrapper (compose.hpp), where A may be one that `of_file` finds. Throws Error with the nearest
/// known name otherwise.
const MethodInfo& find_method(std::string_view name, FindMethodOfFile of_file = nullptr);

/// Returns the method in Python of this name, which lives as long as the program. Throws Error where there is none.
using FindPythonMethod = const MethodInfo& (*)(const std::string& name);
/// Connects find_method() with a Python, before any thread calls it. Without one it refuses methods in Python.
void set_python(FindPythonMethod find);

}  // namespace kvbench::methods
