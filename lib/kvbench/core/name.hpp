// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace kvbench {

/// Throws Error, which begins with `where`, unless `name` is UTF-8 text without control characters (U+0000 to U+001F,
/// U+007F to U+009F). Names become cells of tables and words of messages, which other programs read line by line.
void check_name(std::string_view name, const std::string& where);

}  // namespace kvbench
