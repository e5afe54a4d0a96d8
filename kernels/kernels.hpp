// SPDX-License-Identifier: Apache-2.0
// Private to kernels/: the host back ends. Each operation is specialised once in ref/<file>.cpp and once in cpu/<file>.cpp or,
// where it fills one, in a file of its own name (cuda/ mirrors the names of ref/).
#pragma once

#include <cstddef>

#include <kvbench/kernels/backend.hpp>

namespace kvbench::kernels {

namespace ref {

struct Context {
  Isa isa = Isa::scalar;
};
/// Op = ExactAttention<HostMatrix>, ...
template <class Op>
void run(const Op& op, Context& context);

}  // namespace ref

namespace cpu {

/// Scratch memory that survives between calls, so that small kernels need not ask for it again. Slots grow until trim(). Not
/// zeroed, 64-byte aligned.
class Workspace {
 public:
  Workspace() = default;
  ~Workspace();
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;
  /// At least `bytes` bytes; valid until the same slot is asked for again. Throws std::bad_alloc.
  void* get(int slot, std::size_t bytes);
  /// Gives back slots so large that a kernel which filled one has worked far longer than it takes to get it again: what packs a
  /// whole head must not stay beside everything that comes after it.
  void trim();

 private:
  static constexpr int kSlots = 16;
  struct Slot {
    void* data = nullptr;
    std::size_t bytes = 0;
  };
  Slot slots_[kSlots];
};

struct Context {
  Isa isa;
  Prefilter prefilter;
  Workspace workspace = {};
};

// The sources of cpu/ are compiled once for each instruction set, each time into the namespace of that name.
namespace scalar {
template <class Op>
void run(const Op& op, Context& context);
}
namespace avx2 {
template <class Op>
void run(const Op& op, Context& context);
}
namespace avx512 {
template <class Op>
void run(const Op& op, Context& context);
}

template <class Op>
void run(const Op& op, Context& context) {
  switch (context.isa) {
#if defined(KVBENCH_X86)
    case Isa::avx512:
      avx512::run(op, context);
      break;
    case Isa::avx2:
      avx2::run(op, context);
      break;
#endif
    default:
      scalar::run(op, context);
  }
  context.workspace.trim();
}

}  // namespace cpu
}  // namespace kvbench::kernels
