// SPDX-License-Identifier: Apache-2.0
// Reads variable-length strings without the HDF5 library: HDF5 1.10 trusts the sizes in the global heap of a file and
// copies beyond its buffers where they are wrong.
#pragma once

#include <array>
#include <string>

#include <hdf5.h>

namespace kvbench::trace::h5 {

/// The stored form of one variable-length string: length u32, address u64, index u32.
using HeapReference = std::array<unsigned char, 16>;

/// Reads the reference in `object` with `read`; false where the library fails.
bool read_reference(herr_t (*read)(hid_t object, hid_t type, void* out), hid_t object, HeapReference& reference);

/// The string of a reference (HDF5 file format specification 3.0, section III.E). Throws h5::Failure, whose message
/// begins with `where`, where the heap is damaged.
std::string follow(const HeapReference& reference, const std::string& file, const std::string& where);

}  // namespace kvbench::trace::h5
