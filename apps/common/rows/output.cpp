// SPDX-License-Identifier: Apache-2.0
#include <apps/common/rows/output.hpp>

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <set>

#include <unistd.h>

#include <fmt/format.h>

#include <kvbench/config/request_text.hpp>
#include <kvbench/core/error.hpp>
#include <kvbench/core/read_files.hpp>
#include <kvbench/core/suggest.hpp>

#include <apps/common/rows/flag_names.hpp>

namespace kvbench::app {
namespace {

std::int64_t to_number(std::string_view text, std::string_view whole, std::string_view flag) {
  std::int64_t value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || code != std::errc{} || end != text.data() + text.size()) {
    throw Error("{}: '{}' is not a number or a range such as 0-3", flag, whole);
  }
  return value;
}

}  // namespace

Output::Output(const std::string& path) {
  if (path.empty() || path == "-") return;
  path_ = path;
  if (!is_stream(path)) file_.emplace(path);
}

void Output::finish(std::string_view text) {
  check_not_read(to_file() ? path_ : "/dev/stdout");
  if (!to_file()) return print(text);
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
      if (end == begin) throw Error("{}: '{}' has an empty item", flag, value);
      items.push_back(value.substr(begin, end - begin));
      begin = end + 1;
    }
  }
  return items;
}

std::vector<std::int64_t> number_list(const std::vector<std::string>& values, std::string_view flag) {
  std::vector<std::int64_t> numbers;
  for (const std::string& item : split_list(values, flag)) {
    const std::size_t dash = item.find('-', 1);
    const std::int64_t first = to_number(std::string_view(item).substr(0, dash), item, flag);
    const std::int64_t last =
        dash == std::string::npos ? first : to_number(std::string_view(item).substr(dash + 1), item, flag);
    if (last < first) throw Error("{}: '{}' is not a range; write the smaller number first", flag, item);
    const std::uint64_t more = static_cast<std::uint64_t>(last) - static_cast<std::uint64_t>(first);
    if (more >= static_cast<std::uint64_t>(most_numbers - std::ssize(numbers)))
      throw Error("{}: these are more than {} numbers, up to '{}'; give fewer", flag, most_numbers, item);
    for (std::uint64_t i = 0; i <= more; ++i) numbers.push_back(first + static_cast<std::int64_t>(i));
  }
  return numbers;
}

std::vector<std::int64_t> selected_numbers(const std::vector<std::string>& values, std::string_view flag) {
  return values.size() == 1 && same_name(values.front(), "all") ? std::vector<std::int64_t>()
                                                                : number_list(values, flag);
}

std::vector<std::uint32_t> seed_list(const std::string& text) {
  const auto numbers = number_list({text}, "--seeds");
  const bool count = numbers.size() == 1 && text.find_first_of(",-") == std::string::npos;
  return count ? config::first_seeds(numbers[0]) : config::listed_seeds(numbers);
}

}  // namespace kvbench::app
