// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <kvbench/config/value.hpp>
#include <kvbench/replay/plan/request.hpp>

namespace kvbench::config {

/// The value of a key `methods`: "all", a name, {name = "subgen", t = 4, delta = [1, 2]}, or a list of these. Lists of
/// parameters expand to all combinations, the parameter that is written first changing most slowly; those that zip = ["t", "s"]
/// names advance together. Throws Error with the place.
std::vector<MethodChoice> read_methods(const Value& value);

}  // namespace kvbench::config
