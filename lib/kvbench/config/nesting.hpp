// SPDX-License-Identifier: Apache-2.0
// Limits of TOML files that are checked before they are parsed.
#pragma once

#include <string>
#include <string_view>

namespace kvbench::config {

/// Throws Error, with the place in the file `path`, where more than 16 brackets are open, or a key has more than 17
/// parts. The parser and every function that walks its tree call themselves once per level, so that a file of a few
/// kilobytes could exhaust the stack. Text that is no TOML at all is left to the parser.
void check_nesting(const std::string& path, std::string_view text);

}  // namespace kvbench::config
