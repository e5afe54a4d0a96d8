// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>

namespace kvbench::python {

/// Adds the class Evaluation: scores of a model that runs in Python as the rows of kveval.
void add_evaluation(nanobind::module_& module);

}  // namespace kvbench::python
