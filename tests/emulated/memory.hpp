// SPDX-License-Identifier: Apache-2.0
// Device memory between canaries: poisoned when it is handed out and when it is freed.
#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <memory>

#include "device.hpp"

namespace emulated {

class Memory {
 public:
  /// Null beyond the limit. What it holds is unknown until it is poisoned.
  void* allocate(std::size_t bytes);
  /// No longer counted; still there until it is dropped.
  void release(void* data);
  void poison(void* data);
  /// Throws Fault where something was written around it; keeps the poisoned memory for a while to see whether it is written to.
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
  std::size_t reserved() const { return peak_; }  // the pool gives nothing back

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
