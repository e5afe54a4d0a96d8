// SPDX-License-Identifier: Apache-2.0
// Synthetic subjects.
#pragma once

#include <vector>

#include <kvbench/bounds/check/subject.hpp>

namespace kvbench::bounds {

/// Streams on which the bounds of the theorems are not vacuous. Each is the same on every machine.
std::vector<SubjectSource> synthetic_subjects(Index queries);

}  // namespace kvbench::bounds
