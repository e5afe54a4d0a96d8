// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include <kvbench/methods/contract/method_name.hpp>
#include <kvbench/methods/contract/wrapper.hpp>

namespace kvbench::methods {

/// Every method, in the order of the table in registry.cpp, which `kvbench methods`, --help, docs and the property
/// tests follow.
std::span<const MethodInfo> all_methods();

/// Every wrapper: W in W(A).
std::span<const Wrapper> all_wrappers();

/// "eviction", "merging", ...
std::string_view name_of(Kind kind);
/// The kind of which a family of methods is: "eviction", "Quantization". Absent for other names, also for "exact",
/// which is a method.
std::optional<Kind> find_family(std::string_view name);
/// Whether a name stands for several methods, those of a family among them: rows_of_set() (sets.hpp).
bool is_set(std::string_view name);
/// The kind of a method by its name in results, of W(A) that of A, "composition" of A+Q and of plans, "own" of methods
/// in Python, and "other" of names that this version does not know.
std::string_view family_of(std::string_view method);

/// The method of this name, whatever its settings: a row of all_methods() by name or alias, one that a file defines
/// (find_method.hpp), or the W(A) or A+Q of these (compose.hpp), which live as long as the program. Throws Error, with
/// what to write instead, if there is none.
const MethodInfo& find_method(const MethodName& name);
/// The same for a name without settings.
const MethodInfo& find_method(std::string_view name);

}  // namespace kvbench::methods
