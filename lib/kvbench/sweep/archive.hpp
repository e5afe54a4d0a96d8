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

namespace kvbench::sweep {

static_assert(std::endian::native == std::endian::little, "scalars are stored in their byte order in memory");

template <class T>
concept Scalar = std::is_arithmetic_v<T> || std::is_enum_v<T>;

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

/// Throws std::out_of_range where the bytes end before the value does.
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
  /// Every item takes at least one byte, so that a damaged length cannot allocate more than the size of the file.
  std::size_t length() {
    std::uint64_t count = 0;
    raw(&count, sizeof count);
    if (count > rest_.size()) throw std::out_of_range("a stored list is cut off");
    return count;
  }
  template <Scalar T>
  void get(T& value) {
    raw(&value, sizeof value);
  }
  void get(std::string& text) {
    text.resize(length());
    raw(text.data(), text.size());
  }
  template <class T>
  void get(std::vector<T>& values) {
    values.resize(length());
    if constexpr (Scalar<T>) {
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

}  // namespace kvbench::sweep
