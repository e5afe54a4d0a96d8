// SPDX-License-Identifier: Apache-2.0
#include <kvbench/methods/contract/params.hpp>

#include <charconv>
#include <cmath>
#include <limits>
#include <optional>

#include <kvbench/core/error.hpp>
#include <kvbench/core/name.hpp>

namespace kvbench::methods {

bool ParamSpec::names_file(std::string_view value) const {
  if (!type.ends_with("FILE") || value.empty()) return false;
  return fmt::format("|{}|", type).find(fmt::format("|{}|", value)) == std::string::npos;
}

}  // namespace kvbench::methods

namespace kvbench::methods::detail {
namespace {

/// Tokens, channels and draws are counted in 32 bits, so that sums and products of two of them fit an Index.
constexpr Index largest_integer = std::numeric_limits<std::int32_t>::max();

std::string range_text(ParamRange range) {
  if (range.min == -unbounded && range.max == unbounded) return "";
  if (range.max == unbounded) return fmt::format(">= {}", range.min);
  return fmt::format("{} .. {}", range.min, range.max);
}

class SchemaVisitor : public ParamVisitor {
 public:
  void integer(std::string_view name, Index& value, ParamRange range, std::string_view doc) override {
    add(name, "integer", fmt::format("{}", value), range_text(range), doc);
  }
  void real(std::string_view name, double& value, ParamRange range, std::string_view doc) override {
    add(name, "number", fmt::format("{}", value), range_text(range), doc);
  }
  void flag(std::string_view name, bool& value, std::string_view doc) override {
    add(name, "true|false", value ? "true" : "false", "", doc);
  }
  void text(std::string_view name, std::string& value, std::string_view accepted, std::string_view doc) override {
    add(name, std::string(accepted), value, "", doc);
  }
  void choice(std::string_view name, int& value, std::span<const std::string> options, std::string_view doc) override {
    add(name, fmt::format("{}", fmt::join(options, "|")), options[static_cast<std::size_t>(value)], "", doc);
  }
  std::vector<ParamSpec> specs;

 private:
  void add(std::string_view name, std::string type, std::string value, std::string range, std::string_view doc) {
    specs.push_back({std::string(name), std::move(type), std::move(value), std::move(range), std::string(doc)});
  }
};

/// Finds one parameter by name and sets it from text.
class AssignVisitor : public ParamVisitor {
 public:
  AssignVisitor(std::string_view method, const Assignment& setting) : method_(method), setting_(setting) {}

  void integer(std::string_view name, Index& value, ParamRange range, std::string_view) override {
    if (!matches(name)) return;
    const auto parsed = parse<Index>();
    if (!parsed || !inside(static_cast<double>(*parsed), range)) reject("an integer", range_text(range));
    if (*parsed > largest_integer || *parsed < -largest_integer)
      reject(fmt::format("an integer of at most {}", largest_integer), "");
    value = *parsed;
  }
  void real(std::string_view name, double& value, ParamRange range, std::string_view) override {
    if (!matches(name)) return;
    const auto parsed = parse<double>();
    if (!parsed || !std::isfinite(*parsed) || !inside(*parsed, range)) reject("a number", range_text(range));
    value = *parsed;
  }
  void flag(std::string_view name, bool& value, std::string_view) override {
    if (!matches(name)) return;
    const bool yes = same_name(written(), "true");
    if (!yes && !same_name(written(), "false")) reject("true or false", "");
    value = yes;
  }
  void text(std::string_view name, std::string& value, std::string_view, std::string_view) override {
    if (matches(name)) value = setting_.value;
  }
  void choice(std::string_view name, int& value, std::span<const std::string> options, std::string_view) override {
    if (!matches(name)) return;
    for (std::size_t i = 0; i < options.size(); ++i) {
      if (same_name(options[i], written())) {
        value = static_cast<int>(i);
        return;
      }
    }
    reject(fmt::format("one of {}", fmt::join(options, ", ")), "");
  }

  void require_found() const {
    if (found_) return;
    throw Error("method '{}' has no parameter '{}'.{} It has: {}.", method_, setting_.name,
                did_you_mean(setting_.name, known_),
                known_.empty() ? "none" : fmt::format("{}", fmt::join(known_, ", ")));
  }

 private:
  bool matches(std::string_view name) {
    known_.emplace_back(name);
    if (!same_name(name, setting_.name)) return false;
    return found_ = true;
  }
  std::string_view written() const { return trimmed(setting_.value); }
  template <class T>
  std::optional<T> parse() const {
    T value{};
    const char* end = written().data() + written().size();
    const auto [stop, code] = std::from_chars(written().data(), end, value);
    if (code != std::errc{} || stop != end) return std::nullopt;
    return value;
  }
  static bool inside(double value, ParamRange range) { return range.min <= value && value <= range.max; }
  [[noreturn]] void reject(std::string_view wanted, const std::string& range) const {
    throw Error("parameter '{}.{}' is '{}'; it must be {}{}", method_, setting_.name, setting_.value, wanted,
                range.empty() ? "" : fmt::format(" ({})", range));
  }

  std::string_view method_;
  const Assignment& setting_;
  std::vector<std::string> known_;
  bool found_ = false;
};

}  // namespace

std::vector<ParamSpec> schema_of(Visit visit, void* defaults) {
  SchemaVisitor visitor;
  visit(visitor, defaults);
  return visitor.specs;
}

std::string assign(std::string_view method, Visit visit, void* value, void* defaults,
                   std::span<const Assignment> settings) {
  for (const Assignment& setting : settings) {
    AssignVisitor visitor(method, setting);
    visit(visitor, value);
    visitor.require_found();
  }
  // The "defaults" in the schema of the changed struct are its present values.
  const auto before = schema_of(visit, defaults), after = schema_of(visit, value);
  std::string text;
  for (std::size_t i = 0; i < after.size(); ++i) {
    if (before[i].default_value == after[i].default_value) continue;
    text += fmt::format("{}{}={}", text.empty() ? "" : ";", after[i].name, after[i].default_value);
  }
  return text;
}

}  // namespace kvbench::methods::detail
