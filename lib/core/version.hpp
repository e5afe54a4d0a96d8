// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace kvbench {

std::string_view version();  ///< "0.1.0"
std::string_view commit();   ///< short hash of the commit built, with "-dirty" for local changes; "unknown" outside a checkout

}  // namespace kvbench
