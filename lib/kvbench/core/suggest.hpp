// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace kvbench {

/// Whether two names are equal but for the case of ASCII letters.
bool same_name(std::string_view a, std::string_view b);

/// The known name nearest to `name` by edit distance (insert, delete, replace, swap neighbours), up to a third of the
/// longer length (at least 1), else the first of which one begins with the other, without case; "" where there is none.
std::string nearest_name(std::string_view name, std::span<const std::string> known);

/// " Did you mean 'x'?" or "".
std::string did_you_mean(std::string_view name, std::span<const std::string> known);

/// "a, b, c"; of more than 20 names the first 20 and the number of the others.
std::string listed(std::span<const std::string> names);

}  // namespace kvbench
