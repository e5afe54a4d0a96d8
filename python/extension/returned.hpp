// SPDX-License-Identifier: Apache-2.0
// Numbers and texts that functions of a method in Python return. Each is checked here, once; `name` says which function
// returned it as what, such as "protected_tokens(): sinks". With the GIL. All throw std::logic_error.
#pragma once

#include <string>

#include <nanobind/nanobind.h>

#include <kvbench/methods/contract/method.hpp>

namespace kvbench::python {

namespace nb = nanobind;

inline constexpr Index most_tokens = 0x7fffffff;  ///< their numbers have 32 bits

/// A whole number from 0 to `most`.
Index count_in(nb::handle value, const std::string& name, Index most = most_tokens);
/// A finite number that is not negative.
double amount_in(nb::handle value, const std::string& name);
bool truth_in(nb::handle value, const std::string& name);
/// A text, as tables can show it.
std::string text_in(nb::handle value, const std::string& name);
/// Tokens of a context of n that are always kept; what exceeds the context counts as the whole.
methods::Protected protected_in(nb::handle sinks, nb::handle recent, Index n, const std::string& function);
/// The number of items of a tuple, a list or an array, `least` to `most`.
std::size_t items_in(nb::handle value, std::size_t least, std::size_t most, const std::string& name);

}  // namespace kvbench::python
