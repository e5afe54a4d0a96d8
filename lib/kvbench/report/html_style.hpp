// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace kvbench {

/// The style sheet of a report. Drawings use its variables as colours, so that they suit light and dark screens and paper.
std::string_view html_style();

}  // namespace kvbench
