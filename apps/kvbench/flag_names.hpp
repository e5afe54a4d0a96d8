// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace kvbench::app {

/// A message of the library with the flags of `command` in place of the fields that it names: `kv_heads` becomes --heads.
std::string with_flags(std::string_view message, std::string_view command);

}  // namespace kvbench::app
