// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <kvbench/trace/hdf5/object.hpp>
#include <kvbench/trace/schema.hpp>

namespace kvbench::trace {

/// Creates the file `path` with all groups, attributes, integer datasets and texts of `info`, and with unwritten float
/// arrays. Throws h5::Failure, whose message names `final_name`.
h5::Object create(const std::string& path, const std::string& final_name, const TraceInfo& info, bool compress,
                  H5F_libver_t format = H5F_LIBVER_V110);

}  // namespace kvbench::trace
