// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <kvbench/core/output_path.hpp>
#include <kvbench/methods/contract/info.hpp>

namespace kvbench::store {

/// The files that a method with these parameters ("a=1;b=FILE") reads, with the words by which messages name them: the
/// source of "FILE.py:NAME", and those that parameters name which are files, such as chelsea's outlier heads.
std::vector<NamedFile> files_of_method(const methods::MethodInfo& method, const std::string& params);

}  // namespace kvbench::store
