// SPDX-License-Identifier: Apache-2.0
// What can be known about a file before the HDF5 library is let near it.
#pragma once

#include <cstdint>
#include <string>

namespace kvbench::trace {

/// Length in bytes of the HDF5 file `path`. Throws Error where it is missing, unreadable, no regular file, not HDF5, truncated,
/// still being written, or stored in a way that traces are not (HDF5 file format specification 3.0, section II).
std::uint64_t knock(const std::string& path);

}  // namespace kvbench::trace
