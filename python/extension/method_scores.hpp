// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>

namespace kvbench::python {

/// Adds method_scores(): the scores by which a method ranks the tokens of each context in a replay.
void add_method_scores(nanobind::module_& module);

}  // namespace kvbench::python
