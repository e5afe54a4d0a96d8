// SPDX-License-Identifier: Apache-2.0
// Methods as a file names them: the paths in their names and settings are relative to its folder.
#pragma once

#include <string>
#include <string_view>

#include <kvbench/config/value.hpp>
#include <kvbench/methods/sets.hpp>

namespace kvbench::config {

/// A path relative to the folder of the file of a place.
std::string path_of(const Place& place, const std::string& path);

/// The name of a method as results have it, "mine.py:Mine", whose file is relative to that folder.
methods::MethodName method_name(const Place& place, const methods::MethodName& name);

/// A setting as results have it, where a file that it names is relative to that folder.
methods::Assignment setting_of(const Place& place, const methods::MethodInfo& info, methods::Assignment setting);

/// An error in an item of a list of methods whose path has signs that the list reads as its own, with what to do.
std::string with_path_hint(std::string error);

/// An item of a list of methods in messages. `place`: where a file has it; null: a flag has it.
std::string item_text(std::string_view item, const Place* place);

/// The method that a text such as "snapkv[window=64]" names. `place`: where a file names it; null: a flag does, and
/// paths are as results have them. Throws Error, naming the text, if it cannot be read, and as find_method() does.
methods::MethodSettings method_of(std::string_view text, const Place* place);

/// The reverse: name and settings, "METHOD[A=1,B=FILE]", for a file `path` that says them, whose files are here
/// relative to the current folder.
std::string method_beside(const std::string& path, const methods::MethodInfo& info, const methods::Params& params);

}  // namespace kvbench::config
