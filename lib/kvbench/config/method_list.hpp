// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <kvbench/config/value.hpp>
#include <kvbench/replay/plan/request.hpp>

namespace kvbench::config {

/// Reads the value of the key `methods`: a set such as "all" or "eviction", a name, {name = "subgen", t = 4, delta =
/// [1, 2]}, or a list of these, in which "-knorm" leaves out what stands before it (method_flags.hpp). Lists of values
/// expand to all combinations, in which the first parameter changes slowest; parameters in zip = ["t", "s"] advance
/// together. Throws Error with its place.
std::vector<replay::MethodChoice> read_methods(const Value& value);

}  // namespace kvbench::config
