// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <kvbench/report/document.hpp>

namespace kvbench {

/// One file that needs nothing else: no network, no script; light and dark, on paper and on a narrow screen.
std::string html(const Document& document);

}  // namespace kvbench
