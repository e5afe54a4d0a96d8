// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <kvbench/methods/contract/info.hpp>

namespace kvbench::python {

/// The method in Python of this name, which lives as long as the program (methods::set_python()). Its file is run at
/// the first call. Throws Error where there is none.
const methods::MethodInfo& find_python_method(const std::string& name);

/// methods::source_sha256() of a file that find_python_method() has run.
std::string source_sha256(const std::string& file);

}  // namespace kvbench::python
