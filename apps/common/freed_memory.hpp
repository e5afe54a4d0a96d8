// SPDX-License-Identifier: Apache-2.0
#pragma once

#if defined(__linux__)
#include <malloc.h>
#endif

#include <sys/resource.h>

#include <algorithm>

namespace kvbench::app {

/// A replay allocates and frees the same arrays of a few MiB for every configuration. By default the allocator returns
/// them to the system each time, and mapping them again page by page takes a fifth of the time. Arrays above 32 MiB,
/// those of a long head, are still returned: if they were kept, the process could exceed the memory that --memory
/// allows. Threads have arenas of their own: with one, the lock of the allocator lets 16 threads do what 4 do. The
/// allocator requests memory in steps of M_TOP_PAD, and address space in heaps by arena, and fails where a whole step
/// exceeds the limits of the process (`ulimit -v`).
inline void keep_freed_memory() {
#if defined(__GLIBC__)
  constexpr rlim_t step = 64 << 20;
  rlim_t least = RLIM_INFINITY;
  for (const auto limit : {RLIMIT_AS, RLIMIT_DATA}) {
    rlimit allowed{};
    if (getrlimit(limit, &allowed) == 0) least = std::min(least, allowed.rlim_cur);
  }
  mallopt(M_MMAP_THRESHOLD, 32 << 20);
  if (least != RLIM_INFINITY) mallopt(M_ARENA_MAX, 1);
  mallopt(M_TOP_PAD, static_cast<int>(std::min(step, least / 64)));
  mallopt(M_TRIM_THRESHOLD, 256 << 20);
#endif
}

}  // namespace kvbench::app
