// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <kvbench/core/atomic_file.hpp>
#include <kvbench/core/output_path.hpp>

#include <apps/common/program.hpp>

namespace kvbench::app {

/// The destination of results: a file, which is written atomically, or stdout.
class Output {
 public:
  explicit Output(const std::string& path);  ///< "" or "-": stdout. Throws IoError where the file cannot be written.
  bool to_file() const { return !path_.empty(); }
  void finish(std::string_view text);  ///< writes everything; throws IoError

 private:
  std::string path_;
  std::optional<AtomicFile> file_;  ///< absent for stdout, devices and pipes, which are written directly
};

bool stdout_is_terminal();
/// Whether a command writes its short table instead of the CSV: `format` names it, or names none and the results go to
/// a terminal.
bool shows_table(const std::string& format, const Output& output);
bool stderr_is_terminal();  ///< and neither NO_COLOR nor CI is set

/// A function that prints "kvbench: NOTE" on stderr; empty where `quiet`.
std::function<void(const std::string&)> note_to_stderr(bool quiet);
/// Shows texts on stderr, equal ones once; null unless `verbose`.
std::function<void(const std::string&)> details_to_stderr(bool verbose);

/// "a,b", "c" -> a, b, c. Throws Error with `flag` for empty items.
std::vector<std::string> split_list(const std::vector<std::string>& values, std::string_view flag);

}  // namespace kvbench::app
