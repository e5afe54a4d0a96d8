// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace kvbench {

/// "0.1.0"
std::string_view version();
/// Short hash of the commit built, with "-dirty" for local changes, also from an archive made by git; otherwise
/// "unknown".
std::string_view commit();

}  // namespace kvbench
