// SPDX-License-Identifier: Apache-2.0
// The recomputation of Chelsea as a method. With other rules than those of the paper it is a faulty one.
#pragma once

#include <kvbench/faithful/oracle/chelsea.hpp>

namespace kvbench::faithful {

bounds::ChelseaUnderTest chelsea_with(const ChelseaRules& rules);

}  // namespace kvbench::faithful
