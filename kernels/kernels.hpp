// SPDX-License-Identifier: Apache-2.0
// Private to kernels/: the host back ends. Each operation is specialised once in ref/ and once in cpu/, in the file of
// its header's name or, where it is long, in a file of its own name (cuda/ has the file names of ref/).
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

/// Scratch memory that is kept between calls, so that small kernels do not allocate. Slots grow until trim(). Not
/// zeroed, 64-byte aligned.
class Workspace {
 public:
  Workspace() = default;
  ~Workspace();
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;
  /// At least `bytes` bytes; valid until the next get() of the same slot. Throws std::bad_alloc.
  void* get(int slot, std::size_t bytes);
  /// Frees large slots. A kernel that fills one runs far longer than its allocation takes, and a copy of a whole head
  /// must not occupy memory while other kernels run.
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
