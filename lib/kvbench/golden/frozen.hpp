// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace kvbench::golden {

/// The text of python/kvbench/golden.csv as of the build.
std::string frozen_csv();

}  // namespace kvbench::golden
