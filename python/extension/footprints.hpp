// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>

#include <kvbench/methods/contract/footprint.hpp>

namespace kvbench::python {

namespace nb = nanobind;

/// What footprint() returned for a kv head: a number of tokens whose keys and values are held, or a list of
/// kvbench.Array. Throws std::logic_error for texts and sizes that an array may not have. With the GIL.
methods::Footprint footprint_of(nb::handle given, Index d, Index dv);

}  // namespace kvbench::python
