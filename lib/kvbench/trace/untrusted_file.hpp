// SPDX-License-Identifier: Apache-2.0
// What is checked of a file before this process lets the HDF5 library read it. HDF5 1.10 reads and writes out of bounds on some
// damaged or hostile metadata.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace kvbench::trace {

/// The first bytes of an HDF5 file.
inline constexpr std::string_view hdf5_signature = "\x89HDF\r\n\x1a\n";

/// Length in bytes of the HDF5 file `path`. Throws Error where it is missing, unreadable, no regular file, not HDF5, truncated,
/// still being written, or stored in a way that traces are not (HDF5 file format specification 3.0, section II).
std::uint64_t check_superblock(const std::string& path);

/// Runs `read` in a child process, which damaged metadata may crash without harm. Throws Error naming `path` where the child is
/// killed by a signal or takes more than a minute. What `read` throws in the child is ignored: the caller runs it again. Does
/// nothing where no child can be created.
void try_in_child(const std::string& path, const std::function<void()>& read);

}  // namespace kvbench::trace
