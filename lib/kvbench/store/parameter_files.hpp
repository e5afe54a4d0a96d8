// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <kvbench/core/output_path.hpp>
#include <kvbench/replay/plan/request.hpp>

namespace kvbench::store {

/// The files that a method reads: its kept entries, and those that its parameters name.
std::vector<NamedFile> input_files(const replay::MethodChoice& method);

/// Digests of the files that parameters ("a=1;b=FILE") name, such as chelsea's outlier heads: a cell depends on their content, so they belong to its key. Throws IoError where one cannot be
/// read.
std::string parameter_digests(const std::string& params);

}  // namespace kvbench::store
