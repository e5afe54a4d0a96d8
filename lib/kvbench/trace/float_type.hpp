// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <kvbench/trace/hdf5/object.hpp>
#include <kvbench/trace/schema.hpp>

namespace kvbench::trace::h5 {

/// The stored element type: IEEE single, IEEE half, bfloat16, or a signed byte, little-endian. HDF5 1.10 has no
/// predefined 16-bit float types.
Handle element_type(Dtype dtype);

}  // namespace kvbench::trace::h5
