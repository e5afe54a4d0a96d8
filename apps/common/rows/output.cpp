// SPDX-License-Identifier: Apache-2.0
#include <apps/common/rows/output.hpp>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <set>

#include <unistd.h>

#include <kvbench/core/error.hpp>
#include <kvbench/core/name.hpp>
#include <kvbench/core/output_path.hpp>

#include <apps/common/rows/flag_names.hpp>

namespace kvbench::app {
Output::Output(const std::string& path) {
  if (path.empty() || path == "-") return;
  path_ = path;
  if (!is_stream(path)) file_.emplace(path);
}

void Output::finish(std::string_view text) {
  if (!to_file()) return print(text);
  check_not_read(path_);
  // "a": another program may have written to the file behind /dev/stdout before.
  std::FILE* file = std::fopen(file_ ? file_->temporary().c_str() : path_.c_str(), "a");
  if (file == nullptr) throw_write_error(path_, "cannot be written", errno);
  const bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size() && std::fflush(file) == 0;
  const int cause = errno;
  if (std::fclose(file) != 0 && written) throw_write_error(path_, "cannot be written", errno);
  errno = cause;
  if (!written) throw_write_error(path_, "cannot be written", errno);
  if (file_) file_->publish();
}

std::function<void(const std::string&)> note_to_stderr(bool quiet) {
  if (quiet) return {};
  return [](const std::string& note) { say("kvbench", with_flags(note, "")); };
}

std::function<void(const std::string&)> details_to_stderr(bool verbose) {
  if (!verbose) return {};
  return [shown = std::set<std::string>()](const std::string& text) mutable {
    if (shown.insert(text).second) try_to_show(text + (text.ends_with('\n') ? "" : "\n"));
  };
}

bool stdout_is_terminal() { return ::isatty(STDOUT_FILENO) != 0; }

bool shows_table(const std::string& format, const Output& output) {
  return format == "table" || (format.empty() && !output.to_file() && stdout_is_terminal());
}

bool stderr_is_terminal() {
  return ::isatty(STDERR_FILENO) != 0 && std::getenv("NO_COLOR") == nullptr && std::getenv("CI") == nullptr;
}

std::vector<std::string> split_list(const std::vector<std::string>& values, std::string_view flag) {
  std::vector<std::string> items;
  for (const std::string& value : values) {
    for (std::size_t begin = 0; begin <= value.size();) {
      const std::size_t end = std::min(value.find(',', begin), value.size());
      const std::string_view item = trimmed(std::string_view(value).substr(begin, end - begin));
      if (item.empty()) throw Error("{}: '{}' has an empty item", flag, value);
      items.emplace_back(item);
      begin = end + 1;
    }
  }
  return items;
}

}  // namespace kvbench::app
