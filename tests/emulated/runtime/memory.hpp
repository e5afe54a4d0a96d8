// SPDX-License-Identifier: Apache-2.0
// Device memory between guard regions: poisoned when it is allocated and when it is freed.
#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <memory>

#include <emulated/device.hpp>

namespace emulated {

class Memory {
 public:
  /// Null beyond the limit. The contents are unspecified until they are poisoned.
  void* allocate(std::size_t bytes);
  /// No longer counted, but accessible until drop().
  void release(void* data);
  void poison(void* data);
  /// Throws Fault where the guard regions were written. Keeps the poisoned memory for a while, to find later writes.
  void drop(void* data);

  bool owns(const void* data) const;
  /// Throws Fault unless the bytes lie in memory that is not freed yet.
  void require(const void* data, std::size_t bytes, const char* what) const;
  /// Throws Fault.
  void check_all();
  void check_canaries();

  std::size_t limit = std::size_t{2} << 30;
  std::size_t used() const { return used_; }
  std::size_t peak() const { return peak_; }
  std::size_t reserved() const { return peak_; }  // the pool never shrinks

 private:
  struct Region {
    std::shared_ptr<std::byte[]> storage;
    std::size_t bytes = 0;
    bool released = false;
  };
  using Regions = std::map<std::byte*, Region>;

  static void check(std::byte* data, const Region& region);
  static void check_dropped(std::byte* data, const Region& region);
  Regions::const_iterator containing(const void* data) const;

  Regions regions_;
  std::deque<std::pair<std::byte*, Region>> dropped_;
  std::size_t used_ = 0, peak_ = 0, dropped_bytes_ = 0;
};

}  // namespace emulated
