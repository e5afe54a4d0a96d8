// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace kvbench {

/// Whether two names are equal but for the case of ASCII letters.
bool same_name(std::string_view a, std::string_view b);

/// The known name nearest to `name` by edit distance (insert, delete, replace, swap of neighbours) without case, or ""
/// where none is within a third of the longer length (at least 1). Ties: the first. Where none is near, the first with
/// which the name begins, or that begins with it: "turboquant" for "turbo", "kernel" for "kernel_size".
std::string nearest_name(std::string_view name, std::span<const std::string> known);

/// " Did you mean 'x'?" or "".
std::string did_you_mean(std::string_view name, std::span<const std::string> known);

/// "a, b, c"; of more than 20 names the first 20 and the number of the others.
std::string listed(std::span<const std::string> names);

}  // namespace kvbench
