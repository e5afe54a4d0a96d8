// SPDX-License-Identifier: Apache-2.0
// The back ends on which tests compute: no result depends on what ran on them before.
#pragma once

#include <kvbench/kernels/backend.hpp>

namespace kvbench::testing {

inline Backend& ref() {
  static const auto backend = make_ref_backend();
  return *backend;
}

inline Backend& cpu() {
  static const auto backend = make_cpu_backend();
  return *backend;
}

}  // namespace kvbench::testing
