// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <kvbench/config/value.hpp>
#include <kvbench/replay/plan/request.hpp>

namespace kvbench::config {

/// A path relative to the folder of the sweep file.
std::string path_of(const Place& place, const std::string& path);

/// The name of a method as results have it, "mine.py:Mine", where its file is relative to the folder of the sweep file.
std::string method_name(const Place& place, const std::string& name);

/// The reverse: such a name for a file `path` that says the name, which here is relative to the current folder.
std::string name_beside(const std::string& path, const std::string& name);

/// Reads the value of the key `methods`: "all", "families", a name, {name = "subgen", t = 4, delta = [1, 2]}, or a
/// list of these.
/// Lists of values expand to all combinations, in which the first parameter changes slowest; parameters in zip = ["t",
/// "s"] advance together. Throws Error with its place.
std::vector<replay::MethodChoice> read_methods(const Value& value);

}  // namespace kvbench::config
