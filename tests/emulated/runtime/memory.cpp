// SPDX-License-Identifier: Apache-2.0
#include "memory.hpp"

#include <algorithm>
#include <cstring>
#include <string>

#include <emulated/machine/machine.hpp>

namespace emulated {

namespace {

constexpr std::size_t alignment = 256;
constexpr std::size_t canary = 256;  // bytes before and at least as many behind
constexpr std::size_t dropped_at_most = std::size_t{32} << 20;

std::size_t padded(std::size_t bytes) { return (bytes + alignment - 1) / alignment * alignment; }

void fill(std::byte* from, std::byte* end) {
  std::size_t at = 0;
  const auto size = static_cast<std::size_t>(end - from);
  for (; at + 4 <= size; at += 4) std::memcpy(from + at, &poison, 4);
  std::memcpy(from + at, &poison, size - at);
}

/// The first byte that is not poison, or end.
const std::byte* first_written(const std::byte* from, const std::byte* end) {
  for (const std::byte* at = from; at < end; at += 4) {
    if (std::memcmp(at, &poison, std::min<std::size_t>(4, static_cast<std::size_t>(end - at))) != 0) return at;
  }
  return end;
}

}  // namespace

void* Memory::allocate(std::size_t bytes) {
  if (used_ + bytes > limit) return nullptr;
  used_ += bytes;
  peak_ = std::max(peak_, used_);
  Region region;
  region.bytes = bytes;
  const std::size_t size = canary + padded(bytes) + canary;
  region.storage = {static_cast<std::byte*>(::operator new (size, std::align_val_t{alignment})),
                    [](std::byte* p) { ::operator delete (p, std::align_val_t{alignment}); }};
  std::byte* const data = region.storage.get() + canary;
  fill(region.storage.get(), data);
  fill(data + bytes, region.storage.get() + size);
  regions_[data] = std::move(region);
  return data;
}

void Memory::release(void* data) {
  const auto at = regions_.find(static_cast<std::byte*>(data));
  if (at == regions_.end() || at->second.released) throw Fault("device memory is freed that is not allocated");
  at->second.released = true;
  used_ -= at->second.bytes;
}

void Memory::poison(void* data) {
  const auto at = regions_.find(static_cast<std::byte*>(data));
  if (at != regions_.end()) fill(static_cast<std::byte*>(data), static_cast<std::byte*>(data) + at->second.bytes);
}

void Memory::drop(void* data) {
  const auto at = regions_.find(static_cast<std::byte*>(data));
  if (at == regions_.end()) return;
  check(at->first, at->second);
  poison(data);
  dropped_bytes_ += at->second.bytes;
  dropped_.emplace_back(*at);
  regions_.erase(at);
  while (dropped_bytes_ > dropped_at_most) {
    check_dropped(dropped_.front().first, dropped_.front().second);
    dropped_bytes_ -= dropped_.front().second.bytes;
    dropped_.pop_front();
  }
}

void Memory::check(std::byte* data, const Region& region) {
  std::byte* const end = data + region.bytes;
  std::byte* const last = data + padded(region.bytes) + canary;
  const std::byte* const before = first_written(data - canary, data);
  const std::byte* const behind = first_written(end, last);
  if (before == data && behind == last) return;
  const std::ptrdiff_t at = before != data ? before - data : behind - data;
  fill(data - canary, data);  // reported once
  fill(end, last);
  throw Fault("written outside of device memory: at byte " + std::to_string(at) + " of " +
              std::to_string(region.bytes));
}

void Memory::check_dropped(std::byte* data, const Region& region) {
  const std::byte* const written = first_written(data, data + region.bytes);
  if (written == data + region.bytes) return;
  const std::ptrdiff_t at = written - data;
  fill(data, data + region.bytes);
  throw Fault("written to device memory after it was freed: at byte " + std::to_string(at) + " of " +
              std::to_string(region.bytes));
}

void Memory::check_canaries() {
  for (const auto& [data, region] : regions_) check(data, region);
}

void Memory::check_all() {
  check_canaries();
  for (const auto& [data, region] : dropped_) check_dropped(data, region);
}

Memory::Regions::const_iterator Memory::containing(const void* data) const {
  auto at = regions_.upper_bound(static_cast<std::byte*>(const_cast<void*>(data)));
  if (at == regions_.begin()) return regions_.end();
  --at;
  return static_cast<const std::byte*>(data) <= at->first + at->second.bytes ? at : regions_.end();
}

bool Memory::owns(const void* data) const { return containing(data) != regions_.end(); }

void Memory::require(const void* data, std::size_t bytes, const char* what) const {
  const auto at = containing(data);
  if (at == regions_.end()) throw Fault(std::string(what) + " is not allocated device memory");
  const auto offset = static_cast<std::size_t>(static_cast<const std::byte*>(data) - at->first);
  if (offset + bytes > at->second.bytes) {
    throw Fault(std::string(what) + " reaches beyond its device memory: " + std::to_string(offset + bytes) + " of " +
                std::to_string(at->second.bytes) + " bytes");
  }
}

}  // namespace emulated
