// SPDX-License-Identifier: Apache-2.0
// The tables of a report for LaTeX.
#pragma once

#include <string>

#include <kvbench/report/document/document.hpp>

namespace kvbench::report {

/// The tables that are not folded, with the rules of booktabs and their titles as captions; needs the packages booktabs
/// and longtable, as its first line says.
std::string latex(const Document& document);

}  // namespace kvbench::report
