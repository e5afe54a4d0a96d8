// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace emulated {

/// The name of a function of this program, also of one that is not exported, as a kernel in an unnamed namespace; "a
/// kernel" where the program has no table of symbols.
std::string name_of_function(const void* address);

}  // namespace emulated
