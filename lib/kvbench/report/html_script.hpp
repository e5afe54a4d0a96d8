// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace kvbench {

/// The script of a report. It adds to a page that is complete without it: headers that sort, a filter, and methods that can be picked
/// out in all figures.
std::string_view html_script();

}  // namespace kvbench
