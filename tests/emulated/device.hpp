// SPDX-License-Identifier: Apache-2.0
// The emulated devices, as tests see them: devices that differ in the order in which threads and blocks run between
// meetings. A kernel without a race gives the same bits on all of them. Work is queued and runs when the host waits for it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace emulated {

enum class Order { forward, reverse, shuffled };
constexpr int devices = 3;  // one for each order

/// What fresh and freed device memory, and a block's shared memory, hold: NaN as fp32, fp64 and fp16, a large odd integer.
constexpr std::uint32_t poison = 0x7fffdead;

/// The first fault of a kernel or a copy, as a sentence; empty: none. It stays, as on a device: every later call fails.
std::string fault();
void forget_fault();

/// The kernel that runs, for who looks at a crash: takes no lock. Empty: none.
std::string running_kernel();

/// Of all that was copied from the device to the host so far, in that order.
std::uint64_t digest(int device);

/// Bytes that cudaMallocAsync hands out on each device.
void limit_memory(std::size_t bytes);

/// Looks at all memory of the devices; what was written outside of it, or after it was freed, becomes a fault.
void check_memory();

}  // namespace emulated
