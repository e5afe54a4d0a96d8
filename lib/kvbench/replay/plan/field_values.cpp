// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <tuple>

#include <fmt/ranges.h>

#include <kvbench/replay/plan/fields.hpp>

namespace kvbench::replay {
namespace {

std::string text_of(bool value) { return value ? "true" : "false"; }
std::string text_of(std::int64_t value) { return std::to_string(value); }
std::string text_of(const std::string& value) { return value; }
std::string text_of(const Budget& value) { return value.text(); }
std::string text_of(const Calibration& value) { return value.text(); }
std::string text_of(const MethodChoice& value) { return value.info->name + "[" + value.params.text() + "]"; }

template <class E>
requires std::is_enum_v<E> std::string text_of(E value) {
  return std::ranges::find(value_names<E>(), value, [](const auto& name) { return name.second; })->first;
}
template <class T>
std::string text_of(const std::optional<T>& value) {
  return value ? text_of(*value) : "";
}
template <class T>
std::string text_of(const std::vector<T>& values) {
  std::vector<std::string> items;
  for (const T& value : values) items.push_back(text_of(value));
  std::ranges::sort(items);
  return fmt::format("{}", fmt::join(items, ","));
}
/// A number of seeds where they are the first ones.
std::string text_of(const std::vector<std::uint32_t>& seeds) {
  for (std::size_t s = 0; s < seeds.size(); ++s) {
    if (seeds[s] != s) return fmt::format("{}", fmt::join(seeds, ","));
  }
  return std::to_string(seeds.size());
}

}  // namespace

template <>
const std::map<std::string, Protocol>& value_names() {
  static const std::map<std::string, Protocol> names = {{"auto", Protocol::automatic},
                                                        {"prefill", Protocol::prefill},
                                                        {"decode", Protocol::decode},
                                                        {"stream", Protocol::stream}};
  return names;
}
template <>
const std::map<std::string, Decoded>& value_names() {
  static const std::map<std::string, Decoded> names = {{"method", Decoded::method}, {"keep", Decoded::keep}};
  return names;
}
template <>
const std::map<std::string, methods::Element>& value_names() {
  using methods::Element;
  static const std::map<std::string, Element> names = {
      {"bf16", Element::f16}, {"f16", Element::f16}, {"f32", Element::f32}};
  return names;
}

std::string value_text(const RequestField& field, const ReplayRequest& r) {
  const auto text = [&](auto member) -> std::string {
    if constexpr (std::is_member_pointer_v<decltype(member)>) {
      return text_of(r.*member);
    } else {
      if (r.protect_outside != member.outside || (r.protect_first == 0 && r.protect_last == 0)) return "";
      return fmt::format("the first {} and the last {} tokens", r.protect_first, r.protect_last);
    }
  };
  return std::visit(text, field.member);
}

void copy_value(const RequestField& field, const ReplayRequest& from, ReplayRequest& to) {
  const auto copy = [&](auto member) {
    if constexpr (std::is_member_pointer_v<decltype(member)>)
      to.*member = from.*member;
    else
      std::tie(to.protect_first, to.protect_last, to.protect_outside) =
          std::tie(from.protect_first, from.protect_last, from.protect_outside);
  };
  std::visit(copy, field.member);
}

std::string description(const ReplayRequest& request) {
  static const ReplayRequest defaults;
  std::string out;
  for (const RequestField& field : request_fields()) {
    const std::string value = value_text(field, request);
    if (!field.use.told.empty() && value != value_text(field, defaults))
      out += ", " + fmt::format(fmt::runtime(field.use.told), value);
  }
  return out;
}

std::string stored_text(const ReplayRequest& request) {
  std::string out;
  for (const RequestField& field : request_fields()) {
    if (field.use.stored) out += fmt::format("{}={};", field.name, value_text(field, request));
  }
  return out;
}

}  // namespace kvbench::replay
