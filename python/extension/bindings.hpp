// SPDX-License-Identifier: Apache-2.0
// What the module has beside methods, a file each.
#pragma once

#include <nanobind/nanobind.h>

namespace kvbench::python {

/// Adds the class Decoder: loop::Decoder for arrays of NumPy, from a model that runs in Python.
void add_decoder(nanobind::module_& module);

/// Adds the class Evaluation: scores of a model that runs in Python as the rows of kveval.
void add_evaluation(nanobind::module_& module);

/// Adds method_scores(): the scores by which a method ranks the tokens of each context in a replay.
void add_method_scores(nanobind::module_& module);

}  // namespace kvbench::python
