// SPDX-License-Identifier: Apache-2.0
#include <kvbench/config/nesting.hpp>

#include <algorithm>

#include <kvbench/config/value.hpp>

namespace kvbench::config {
namespace {

constexpr int most = 16;  // levels; a sweep file uses four

class NestingScanner {
 public:
  NestingScanner(const std::string& path, std::string_view text) : path_(path), text_(text) {}

  void run() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '"' || c == '\'') {
        skip_string(c);
        continue;
      }
      if (c == '#') {
        skip_to_line_end();
        continue;
      }
      count(c);
      ++at_;
    }
  }

 private:
  void count(char c) {
    if (c == '[' || c == '{') {
      if (++open_ > most) refuse("more than {} brackets are open here; no file that kvbench reads has such values");
      dots_ = 0;
    } else if (c == ']' || c == '}') {
      open_ = std::max(open_ - 1, 0);
    } else if (c == '.') {
      if (++dots_ > most) refuse("a key has more than {} dots; no file that kvbench reads has such keys");
    } else if (c == '\n' || c == '=' || c == ',') {
      dots_ = 0;
    }
  }

  void skip_to_line_end() { at_ = std::min(text_.find('\n', at_), text_.size()); }

  /// Strings in single quotes have no escapes. A string in three quotes may end in one or two quotes of its own.
  void skip_string(char quote) {
    const std::string three(3, quote);
    const bool several_lines = text_.substr(at_).starts_with(three);
    at_ += several_lines ? 3 : 1;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '\n' && !several_lines) return;  // not valid, which the parser reports
      if (c == '\\' && quote == '"') {
        at_ += 2;
      } else if (several_lines && text_.substr(at_).starts_with(three)) {
        at_ += 3;
        for (int own = 0; own < 2 && at_ < text_.size() && text_[at_] == quote; ++own) ++at_;
        return;
      } else {
        ++at_;
        if (c == quote && !several_lines) return;
      }
    }
  }

  [[noreturn]] void refuse(fmt::format_string<const int&> why) const {
    const std::string_view before = text_.substr(0, at_);
    const auto line = static_cast<std::uint32_t>(1 + std::ranges::count(before, '\n'));
    const auto column = static_cast<std::uint32_t>(at_ - (before.rfind('\n') + 1) + 1);  // npos + 1 = 0
    fail_at({path_, line, column}, why, most);
  }

  const std::string& path_;
  std::string_view text_;
  std::size_t at_ = 0;
  int open_ = 0, dots_ = 0;  // brackets that are open, and dots since the key or value began
};

}  // namespace

void check_nesting(const std::string& path, std::string_view text) { NestingScanner(path, text).run(); }

}  // namespace kvbench::config
