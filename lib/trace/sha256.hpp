// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace kvbench::trace {

/// SHA-256 of the bytes of the file `path`, in lower-case hex. Throws IoError where it cannot be read.
std::string sha256_of_file(const std::string& path);

}  // namespace kvbench::trace
