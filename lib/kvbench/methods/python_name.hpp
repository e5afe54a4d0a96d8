// SPDX-License-Identifier: Apache-2.0
// Names of methods that are written in Python: FILE.py:NAME, or py:NAME for one that a running Python has defined.
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

}  // namespace kvbench::methods
