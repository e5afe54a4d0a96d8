// SPDX-License-Identifier: Apache-2.0
#include <kvbench/config/value.hpp>

#include <algorithm>
#include <cmath>
#include <tuple>

// The parser assumes of a key what it checks right afterwards, and what a line end after "[" does not keep: it would
// abort, or, compiled by clang with NDEBUG, leave the check out.
#include <toml++/impl/preprocessor.h>
#undef TOML_ASSERT_ASSUME
#define TOML_ASSERT_ASSUME(condition) static_assert(true)
#include <toml++/toml.h>

#include <kvbench/core/input_file.hpp>
#include <kvbench/core/name.hpp>

namespace kvbench::config {
namespace {

constexpr std::uint64_t max_file_bytes = 1 << 20;  // thousands of runs

constexpr int most_levels = 16;  // a sweep file uses four

/// Throws Error, with the place in the file, where more than 16 brackets are open, or a key has more than 17 parts. The
/// parser and every function that walks its tree call themselves once per level, so that a file of a few kilobytes
/// could exhaust the stack. Text that is no TOML at all is left to the parser.
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
      if (++open_ > most_levels)
        refuse("more than {} brackets are open here; no file that kvbench reads has such values");
      dots_ = 0;
    } else if (c == ']' || c == '}') {
      open_ = std::max(open_ - 1, 0);
    } else if (c == '.') {
      if (++dots_ > most_levels) refuse("a key has more than {} dots; no file that kvbench reads has such keys");
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
    fail_at({path_, line, column}, why, most_levels);
  }

  const std::string& path_;
  std::string_view text_;
  std::size_t at_ = 0;
  int open_ = 0, dots_ = 0;  // brackets that are open, and dots since the key or value began
};

class Converter {
 public:
  explicit Converter(const std::string& file) : file_(file) {}

  Place place(const toml::source_region& region) const { return {file_, region.begin.line, region.begin.column}; }

  Value value(const toml::node& node) const {
    Value out{.kind = Value::Kind::text, .place = place(node.source())};
    switch (node.type()) {
      case toml::node_type::table:
        out.kind = Value::Kind::table;
        out.members = members(*node.as_table());
        break;
      case toml::node_type::array:
        out.kind = Value::Kind::list;
        for (const toml::node& item : *node.as_array()) out.items.push_back(value(item));
        break;
      case toml::node_type::string:
        out.text = node.as_string()->get();
        check_name(out.text, out.place.text() + ": this text");
        break;
      case toml::node_type::integer:
        out.kind = Value::Kind::integer;
        out.text = fmt::format("{}", node.as_integer()->get());
        break;
      case toml::node_type::floating_point:
        out.kind = Value::Kind::number;
        out.text = fmt::format("{}", node.as_floating_point()->get());
        if (!std::isfinite(node.as_floating_point()->get()))
          fail_at(out.place, "{} is not a number that a sweep file takes", out.text);
        break;
      case toml::node_type::boolean:
        out.kind = Value::Kind::flag;
        out.text = node.as_boolean()->get() ? "true" : "false";
        break;
      default:
        fail_at(out.place, "a sweep file has no dates or times");
    }
    return out;
  }

 private:
  std::vector<Member> members(const toml::table& table) const {
    std::vector<Member> out;
    for (const auto& [key, node] : table) {
      out.push_back({std::string(key.str()), place(key.source()), value(node)});
      check_name(out.back().key, out.back().place.text() + ": this key");
    }
    std::ranges::stable_sort(out, {}, [](const Member& m) { return std::tuple(m.place.line, m.place.column); });
    return out;
  }

  const std::string& file_;
};

}  // namespace

std::string Place::text() const { return line == 0 ? file : fmt::format("{}:{}:{}", file, line, column); }

std::string describe(const Value& value) {
  switch (value.kind) {
    case Value::Kind::text:
      return fmt::format("the text '{}'", value.text);
    case Value::Kind::list:
      return "a list";
    case Value::Kind::table:
      return "a table";
    case Value::Kind::flag:
      return value.text;
    default:
      return fmt::format("the number {}", value.text);
  }
}

const std::string& text_of(const Member& member) {
  if (member.value.kind == Value::Kind::text) return member.value.text;
  fail_at(member.value.place, "'{}' takes a text, not {}", member.key, describe(member.value));
}

std::string toml_text(const std::string& path, std::string_view what, std::uint64_t most) {
  const std::string hint = path.ends_with(".toml") ? "" : file_hint(path);
  if (!hint.empty()) throw Error("{}: is not {}.{}", path, what, hint);
  return read_input_file(path, most, fmt::format("{} such as NAME.toml", what));
}

Value read_toml(const std::string& path) { return parse_toml(path, toml_text(path, "a sweep file", max_file_bytes)); }

Value parse_toml(const std::string& path, const std::string& text) {
  NestingScanner(path, text).run();
  try {
    const toml::table table = toml::parse(text, path);
    return Converter(path).value(table);
  } catch (const toml::parse_error& error) {
    fail_at(Converter(path).place(error.source()), "this is not valid TOML: {}", error.description());
  }
}

}  // namespace kvbench::config
