// SPDX-License-Identifier: Apache-2.0
// Drawings of a document by name.
#pragma once

#include <string>
#include <vector>

#include <kvbench/report/document/document.hpp>

namespace kvbench::report {

struct NamedDrawing {
  std::string name;  ///< of its figure, and its own where that of the figure lacks it: "error-by-layer/budget-25mem"
  const Drawing* drawing;
};

/// All drawings of the document, in its order, with distinct names.
std::vector<NamedDrawing> drawings_of(const Document& document);

/// The drawing of this name, or the only one whose name contains the text. Throws Error with the names where there is
/// none or are several.
const Drawing& find_drawing(const Document& document, const std::string& name);

}  // namespace kvbench::report
