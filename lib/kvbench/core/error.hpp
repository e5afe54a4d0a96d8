// SPDX-License-Identifier: Apache-2.0
// Errors at the boundary. The library throws them; only apps/ print them and turn them into exit codes.
#pragma once

#include <stdexcept>
#include <string>

#include <fmt/format.h>

namespace kvbench {

/// A fault that the user can correct: invalid input or usage. The message is a sentence that names the file, dataset,
/// parameter or field (in backquotes: `window`), the fault, and the remedy. Exit code 2.
class Error : public std::runtime_error {
 public:
  template <class... Args>
  explicit Error(fmt::format_string<Args...> format, Args&&... args)
      : std::runtime_error(fmt::format(format, std::forward<Args>(args)...)) {}
};

/// Nothing that was asked for fits its budget: all is well with the input, and there is no answer. Exit code 1.
class NothingFits : public Error {
 public:
  using Error::Error;
};

/// A failure of the machine: disk full, unwritable output, I/O error. Exit code 3.
class IoError : public std::runtime_error {
 public:
  template <class... Args>
  explicit IoError(fmt::format_string<Args...> format, Args&&... args)
      : std::runtime_error(fmt::format(format, std::forward<Args>(args)...)) {}
};

/// The user asked to stop (SIGINT, SIGTERM). Exit code 130.
class Interrupted : public std::runtime_error {
 public:
  Interrupted() : std::runtime_error("interrupted") {}
};

}  // namespace kvbench
