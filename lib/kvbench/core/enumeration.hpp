// SPDX-License-Identifier: Apache-2.0
// How many values an enumeration has, from its declaration, and their names from a table that must have all of them.
#pragma once

#include <cstddef>
#include <string_view>

namespace kvbench {
namespace detail {

/// Whether the value has an enumerator: GCC and Clang write its name here, and "(kvbench::Status)4" for another value.
/// Clang writes names of unnamed namespaces in parentheses too, but no number follows them.
template <auto Value>
consteval bool is_enumerator() {
  const std::string_view text = __PRETTY_FUNCTION__;
  const std::string_view value = text.substr(text.find("Value = ") + 8);
  const char after = value[value.rfind(')') + 1];  // the first character where there is no parenthesis
  return value.front() != '(' || !('0' <= after && after <= '9');
}

template <class E, std::size_t Count = 0>
consteval std::size_t count_enumerators() {
  if constexpr (is_enumerator<static_cast<E>(Count)>()) return count_enumerators<E, Count + 1>();
  return Count;
}

}  // namespace detail

/// The number of enumerators of an enum class, whose values are 0, 1, ...
template <class E>
inline constexpr std::size_t enumerator_count = detail::count_enumerators<E>();

/// The name of a value, out of a table of the names of all values in their order.
template <class E, std::size_t Names>
constexpr std::string_view name_in(const std::string_view (&names)[Names], E value) {
  static_assert(Names == enumerator_count<E>, "the table needs a name for every enumerator");
  return names[static_cast<std::size_t>(value)];
}

}  // namespace kvbench
