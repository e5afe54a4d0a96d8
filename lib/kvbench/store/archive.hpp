// SPDX-License-Identifier: Apache-2.0
// Values as bytes and back. A struct lists its members once, in visit(archive, value), which serves both directions.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <kvbench/core/enumeration.hpp>

namespace kvbench::store {

static_assert(std::endian::native == std::endian::little, "scalars are stored in their byte order in memory");

template <class T>
concept Scalar = std::is_arithmetic_v<T> || std::is_enum_v<T>;

/// How many values an enumeration has, from 0 on. One without enumerators has a specialisation.
template <class E>
inline constexpr std::uint64_t enum_size = enumerator_count<E>;

class ByteWriter {
 public:
  static constexpr bool reads = false;
  std::string bytes;

  template <class... T>
  void operator()(T&... values) {
    (put(values), ...);
  }

 private:
  void raw(const void* data, std::size_t size) { bytes.append(static_cast<const char*>(data), size); }
  void length(std::size_t count) {
    const auto number = static_cast<std::uint64_t>(count);
    raw(&number, sizeof number);
  }
  template <Scalar T>
  void put(T& value) {
    raw(&value, sizeof value);
  }
  void put(std::string& text) {
    length(text.size());
    raw(text.data(), text.size());
  }
  template <class T>
  void put(std::vector<T>& values) {
    length(values.size());
    if constexpr (Scalar<T>) {
      raw(values.data(), values.size() * sizeof(T));
    } else {
      for (T& value : values) put(value);
    }
  }
  template <class T>
  void put(T& value) {
    visit(*this, value);
  }
};

/// The bytes of the smallest value of a type: lists and texts of a value that nothing was assigned to are empty.
template <class T>
std::size_t least_bytes() {
  static const std::size_t size = [] {
    T value{};
    ByteWriter writer;
    writer(value);
    return writer.bytes.size();
  }();
  return size;
}

/// Throws std::out_of_range where the bytes end before the value does, or hold a value that its type does not have.
class ByteReader {
 public:
  static constexpr bool reads = true;
  explicit ByteReader(std::string_view bytes) : rest_(bytes) {}
  bool at_end() const { return rest_.empty(); }

  template <class... T>
  void operator()(T&... values) {
    (get(values), ...);
  }

 private:
  void raw(void* data, std::size_t size) {
    if (size > rest_.size()) throw std::out_of_range("a stored value is cut off");
    if (size > 0) std::memcpy(data, rest_.data(), size);
    rest_.remove_prefix(size);
  }
  /// The length of a list of items that take at least `item_bytes` each. A length that the rest of the bytes cannot
  /// hold must not decide how much memory is allocated.
  std::size_t length(std::size_t item_bytes) {
    std::uint64_t count = 0;
    raw(&count, sizeof count);
    if (count > rest_.size() / item_bytes) throw std::out_of_range("a stored list is cut off");
    return count;
  }
  template <Scalar T>
  void get(T& value) {
    if constexpr (std::is_enum_v<T>) {
      static_assert(enum_size<T> > 0, "an enumeration without enumerators needs a specialisation of enum_size");
      value = static_cast<T>(below<std::underlying_type_t<T>>(enum_size<T>));
    } else if constexpr (std::is_same_v<T, bool>) {
      value = below<std::uint8_t>(2) != 0;
    } else {
      raw(&value, sizeof value);
    }
  }
  template <class Stored>
  Stored below(std::uint64_t limit) {
    Stored value{};
    raw(&value, sizeof value);
    if (static_cast<std::uint64_t>(value) >= limit) throw std::out_of_range("a stored value is unknown");
    return value;
  }
  void get(std::string& text) {
    text.resize(length(1));
    raw(text.data(), text.size());
  }
  template <class T>
  void get(std::vector<T>& values) {
    values.resize(length(least_bytes<T>()));
    if constexpr (Scalar<T>) {
      static_assert(std::is_arithmetic_v<T> && !std::is_same_v<T, bool>, "other values have to be checked one by one");
      raw(values.data(), values.size() * sizeof(T));
    } else {
      for (T& value : values) get(value);
    }
  }
  template <class T>
  void get(T& value) {
    visit(*this, value);
  }

  std::string_view rest_;
};

template <class T>
std::string encode(T& value) {
  ByteWriter writer;
  writer(value);
  return std::move(writer.bytes);
}

/// Throws std::out_of_range where these are not the bytes of one value.
template <class T>
T decode(std::string_view bytes) {
  T value;
  ByteReader reader(bytes);
  reader(value);
  if (!reader.at_end()) throw std::out_of_range("stored values are followed by others");
  return value;
}

}  // namespace kvbench::store
