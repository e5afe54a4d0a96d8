// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <apps/eval/options.hpp>

namespace kvbench::kveval {

/// Evaluates every configuration on every document and writes the table. Returns the exit code: 1 where a configuration
/// failed. Throws Error, IoError, std::bad_alloc or Interrupted, and then writes nothing.
int evaluate(const Options& options);

}  // namespace kvbench::kveval
