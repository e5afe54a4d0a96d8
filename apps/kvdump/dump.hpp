// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <kvbench/core/error.hpp>

#include <apps/kvdump/options.hpp>

namespace kvbench::kvdump {

/// Attention over the captured arrays differs from the attention output of the model. Exit code 1.
class CheckFailed : public std::runtime_error {
 public:
  template <class... Args>
  explicit CheckFailed(fmt::format_string<Args...> format, Args&&... args)
      : std::runtime_error(fmt::format(format, std::forward<Args>(args)...)) {}
};

/// Runs the model on every prompt and writes the trace. Throws Error, IoError, Interrupted or CheckFailed, and then
/// writes no trace.
void dump(const Options& options);

}  // namespace kvbench::kvdump
