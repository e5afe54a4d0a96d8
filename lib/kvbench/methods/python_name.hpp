// SPDX-License-Identifier: Apache-2.0
// Names of methods that are written in Python: FILE.py:NAME, or py:NAME for one that a running Python has defined;
// alone, or inside a wrapper.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace kvbench::methods {

struct PythonName {
  std::string file;    ///< path of the source; "" where the running Python has defined the method
  std::string object;  ///< name of the class or scorer in it
};
/// Absent where `name` is not the name of such a method.
std::optional<PythonName> parse_python_name(std::string_view name);

/// SHA-256 of the state of a file FILE.py that runs, which a file on the disk may have left behind; "" where none runs.
std::string source_sha256(const std::string& file);
/// Makes this function answer it, with Python: kvbench._core.
void set_source_sha256(std::string (*of_file)(const std::string& file));

}  // namespace kvbench::methods
