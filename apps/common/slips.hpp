// SPDX-License-Identifier: Apache-2.0
// Words for commands and flags that users of other programs write.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace kvbench::app {

/// " Write ..." with the right word for a command, such as "list", or a flag, such as "--ratio"; "" without one.
/// has() tells whether a flag, a positional or a subcommand exists where it was written.
std::string right_word(std::string_view written, const std::function<bool(const std::string&)>& has);

}  // namespace kvbench::app
