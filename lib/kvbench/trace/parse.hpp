// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <kvbench/trace/guard/input_object.hpp>

namespace kvbench::trace {

/// Reads and validates everything except the float arrays, and validates type, shape and storage of the float arrays.
/// `path` is for messages. Throws Error or h5::Failure.
TraceInfo parse(const h5::InputObject& root, const std::string& path);

}  // namespace kvbench::trace
