// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <kvbench/methods/contract/info.hpp>
#include <kvbench/methods/contract/method_name.hpp>

namespace kvbench::python {

/// The method in Python of this name, as methods::Definer has it. Its file is run at the first call. Throws Error where
/// there is none.
const methods::MethodInfo& find_python_method(const methods::MethodName& name);

/// methods::source_sha256() of a file that find_python_method() has run.
std::string source_sha256(const std::string& file);

}  // namespace kvbench::python
