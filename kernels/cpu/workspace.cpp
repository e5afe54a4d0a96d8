// SPDX-License-Identifier: Apache-2.0
#include <cassert>
#include <new>

#include "../kernels.hpp"

namespace kvbench::kernels::cpu {

namespace {
constexpr std::align_val_t kAlignment{64};
}

Workspace::~Workspace() {
  for (const Slot& slot : slots_) ::operator delete(slot.data, kAlignment);
}

void* Workspace::get(int slot, std::size_t bytes) {
  assert(slot >= 0 && slot < kSlots);
  Slot& s = slots_[slot];
  if (s.data == nullptr || s.bytes < bytes) {
    ::operator delete(s.data, kAlignment);
    s = {};
    s.data = ::operator new(bytes, kAlignment);
    s.bytes = bytes;
  }
  return s.data;
}

void Workspace::trim() {
  constexpr std::size_t kept = std::size_t{64} << 20;
  for (Slot& slot : slots_) {
    if (slot.bytes <= kept) continue;
    ::operator delete(slot.data, kAlignment);
    slot = {};
  }
}

}  // namespace kvbench::kernels::cpu
