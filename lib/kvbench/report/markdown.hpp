// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <kvbench/report/document.hpp>

namespace kvbench {

/// The words and tables of a report; of a figure its caption and its numbers.
std::string markdown(const Document& document);

}  // namespace kvbench
