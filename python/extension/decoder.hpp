// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>

namespace kvbench::python {

/// Adds the class Decoder: loop::Decoder for arrays of NumPy, from a model that runs in Python.
void add_decoder(nanobind::module_& module);

}  // namespace kvbench::python
