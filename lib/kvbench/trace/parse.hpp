// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include <kvbench/trace/hdf5.hpp>

namespace kvbench::trace {

/// Reads and validates everything but the float arrays, and the type, shape and storage of those.
/// `length` is the file's: no dataset may claim more than it, nor all of them together. Throws Error or h5::Failure.
TraceInfo parse(const h5::Object& file, const std::string& path, std::uint64_t length);

}  // namespace kvbench::trace
