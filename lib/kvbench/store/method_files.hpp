// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <kvbench/core/output_path.hpp>

namespace kvbench::store {

/// The files that a method reads, with the words by which messages name them: the source of "FILE.py:NAME", and files
/// that its parameters ("a=1;b=FILE") name, such as chelsea's outlier heads.
std::vector<NamedFile> files_of_method(const std::string& name, const std::string& params);

}  // namespace kvbench::store
