// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace kvbench::store {

/// Digests of the files that parameters of a method ("a=1;b=FILE") name, such as chelsea's outlier heads: a cell
/// depends on their content, so they belong to its key. Throws IoError where one cannot be read.
std::string parameter_files(const std::string& params);

}  // namespace kvbench::store
