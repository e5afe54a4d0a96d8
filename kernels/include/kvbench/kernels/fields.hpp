// SPDX-License-Identifier: Apache-2.0
// How back ends turn an operation on buffers into the same operation on views of their memory. Every operation names
// its members once, in fields(); everything else follows from that.
#pragma once

#include <algorithm>
#include <cstddef>
#include <tuple>

#include <kvbench/kernels/buffer.hpp>

namespace kvbench::kernels {

namespace fields_detail {

/// Converts to every type; for expressions that are never evaluated.
struct Anything {
  template <class T>
  operator T() const;
};

/// The number of members of an aggregate is the largest number of initialisers that it accepts.
template <class Aggregate, class... Initialisers>
consteval std::size_t member_count() {
  if constexpr (requires { Aggregate{Initialisers{}..., Anything{}}; }) {
    return member_count<Aggregate, Initialisers..., Anything>();
  } else {
    return sizeof...(Initialisers);
  }
}

/// Stands for the array references of an operation in fields_are_complete().
template <class T>
struct Probe {};

template <class T, Space S>
void assign(MatrixView<T, S>& to, const Buffer<T>& from) {
  to = BufferAccess::view<S>(from);
}
template <class T>
void assign(T& to, const T& from) {
  to = from;
}

}  // namespace fields_detail

/// Whether fields() names every member of an operation exactly once.
template <template <template <class> class> class Op>
consteval bool fields_are_complete() {
  using Probed = Op<fields_detail::Probe>;
  Probed op{};
  return std::apply(
      [](const auto&... field) {
        constexpr std::size_t count = sizeof...(field);
        const void* const addresses[] = {&field...};
        for (std::size_t i = 0; i < count; ++i)
          if (std::find(addresses, addresses + i, addresses[i]) != addresses + i) return false;
        return count == fields_detail::member_count<Probed>();
      },
      Probed::fields(op));
}

/// The operation with views of its buffers, To = HostMatrix or DeviceMatrix; all other fields are copied.
template <template <class> class To, template <template <class> class> class Op>
Op<To> views_of(const Op<Buffer>& op) {
  static_assert(fields_are_complete<Op>(), "fields() must name every member of the operation exactly once");
  Op<To> views{};
  std::apply(
      [&](const auto&... from) {
        std::apply([&](auto&... to) { (fields_detail::assign(to, from), ...); }, Op<To>::fields(views));
      },
      Op<Buffer>::fields(op));
  return views;
}

}  // namespace kvbench::kernels
