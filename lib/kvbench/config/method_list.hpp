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

/// A setting as results have it, where a file that it names is relative to the folder of the sweep file.
methods::Assignment setting_of(const Place& place, const methods::MethodInfo& info, methods::Assignment setting);

/// The reverse: name and settings, "METHOD[A=1,B=FILE]", for a file `path` that says them, whose files are here
/// relative to the current folder.
std::string method_beside(const std::string& path, const methods::MethodInfo& info, const methods::Params& params);

/// Reads the value of the key `methods`: a set such as "all" or "eviction", a name, {name = "subgen", t = 4, delta =
/// [1, 2]}, or a list of these, in which "-knorm" leaves out what stands before it (method_flags.hpp). Lists of values
/// expand to all combinations, in which the first parameter changes slowest; parameters in zip = ["t", "s"] advance
/// together. Throws Error with its place.
std::vector<replay::MethodChoice> read_methods(const Value& value);

}  // namespace kvbench::config
