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

}  // namespace kvbench::methods
