// SPDX-License-Identifier: Apache-2.0
// The tables of a report for LaTeX.
#pragma once

#include <string>

#include <kvbench/report/document/document.hpp>

namespace kvbench::report {

/// The tables that are not folded, without what is for screens alone, with the rules of booktabs and their titles as
/// captions, at most as wide as the text of the class `article`; its second line names the packages that it needs.
std::string latex(const Document& document);

}  // namespace kvbench::report
