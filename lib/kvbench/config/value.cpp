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

#include <kvbench/config/nesting.hpp>
#include <kvbench/core/file_hint.hpp>
#include <kvbench/core/input_file.hpp>
#include <kvbench/core/name.hpp>

namespace kvbench::config {
namespace {

constexpr std::uint64_t max_file_bytes = 1 << 20;  // thousands of runs

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

Value read_toml(const std::string& path) {
  const std::string hint = path.ends_with(".toml") ? "" : file_hint(path);
  if (!hint.empty()) throw Error("{}: is not a sweep file.{}", path, hint);
  return parse_toml(path, read_input_file(path, max_file_bytes, "a sweep file such as NAME.toml"));
}

Value parse_toml(const std::string& path, const std::string& text) {
  check_nesting(path, text);
  try {
    const toml::table table = toml::parse(text, path);
    return Converter(path).value(table);
  } catch (const toml::parse_error& error) {
    fail_at(Converter(path).place(error.source()), "this is not valid TOML: {}", error.description());
  }
}

}  // namespace kvbench::config
