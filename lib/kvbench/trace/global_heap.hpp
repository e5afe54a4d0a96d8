// SPDX-License-Identifier: Apache-2.0
// Variable-length strings, read by ourselves: HDF5 1.10 believes the sizes in a file's global heap and copies beyond its
// buffers where they lie.
#pragma once

#include <array>
#include <string>

#include <hdf5.h>

namespace kvbench::trace::h5 {

/// What a dataset or attribute stores for one variable-length string: length u32, address u64, index u32.
using HeapReference = std::array<unsigned char, 16>;

/// The reference that `read` finds in `object`. False where the library refuses.
bool read_reference(herr_t (*read)(hid_t object, hid_t type, void* out), hid_t object, HeapReference& reference);

/// The string it stands for (HDF5 file format specification 3.0, section III.E). `where` begins the message of the h5::Failure
/// that a damaged heap earns.
std::string follow(const HeapReference& reference, const std::string& file, const std::string& where);

}  // namespace kvbench::trace::h5
