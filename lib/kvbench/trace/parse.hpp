// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include <kvbench/trace/hdf5.hpp>

namespace kvbench::trace {

/// Reads and validates everything except the float arrays, and validates type, shape and storage of the float arrays. `length` is
/// the length of the file: the sum of the sizes of all datasets must not exceed it. Throws Error or h5::Failure.
TraceInfo parse(const h5::Object& file, const std::string& path, std::uint64_t length);

}  // namespace kvbench::trace
