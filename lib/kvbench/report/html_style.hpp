// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace kvbench {

/// The style sheet of a report. Drawings take their colours from its variables, so that they follow light, dark and paper.
std::string_view html_style();

}  // namespace kvbench
