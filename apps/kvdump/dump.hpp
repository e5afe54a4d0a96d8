// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <kvbench/core/error.hpp>

#include "options.hpp"

namespace kvbench::kvdump {

/// The captured arrays do not give the model's own attention output. Exit code 1.
class CheckFailed : public std::runtime_error {
 public:
  template <class... Args>
  explicit CheckFailed(fmt::format_string<Args...> format, Args&&... args)
      : std::runtime_error(fmt::format(format, std::forward<Args>(args)...)) {}
};

/// Runs the model on every prompt and writes the trace. Throws Error, IoError, Interrupted or CheckFailed; then no trace is
/// left.
void dump(const Options& options);

}  // namespace kvbench::kvdump
