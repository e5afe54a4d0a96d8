// SPDX-License-Identifier: Apache-2.0
// The files of this folder that are parts of every page; CMake embeds them without their first comment.
#pragma once

#include <string_view>

namespace kvbench::report {

std::string_view report_css();
std::string_view report_js();

}  // namespace kvbench::report
