// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <kvbench/trace/hdf5.hpp>

namespace kvbench::trace {

/// Creates the file `path` with every group, attribute, integer dataset and text of `info`, and every float array unwritten.
/// Errors name `final_name`. Throws h5::Failure.
h5::Object create(const std::string& path, const std::string& final_name, const TraceInfo& info, bool compress,
                  H5F_libver_t format = H5F_LIBVER_V110);

}  // namespace kvbench::trace
