// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace kvbench::app {

/// A message of the library in which the fields are replaced by the flags of `command`: `kv_heads` becomes --heads.
std::string with_flags(std::string_view message, std::string_view command);

}  // namespace kvbench::app
