// SPDX-License-Identifier: Apache-2.0
// What tests control and query of the emulated devices, which differ in the order in which threads and blocks run
// between synchronisations. A kernel without a race writes the same bits on all of them. Work is queued and runs when
// the host waits for it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace emulated {

enum class Order { forward, reverse, shuffled };
constexpr int devices = 3;  // one per order

/// The contents of allocated, of freed and of shared memory before they are written: NaN as fp32, fp64 and fp16, a
/// large odd integer.
constexpr std::uint32_t poison = 0x7fffdead;

/// The first fault of a kernel or a copy, as a sentence; empty: none. As on a device, every later call fails.
std::string fault();
void forget_fault();

/// The kernel that runs, for reports of crashes: takes no lock. Empty: none.
std::string running_kernel();

/// Of everything copied from the device to the host so far, in that order.
std::uint64_t digest(int device);

/// The bytes that can be allocated on each device.
void limit_memory(std::size_t bytes);

/// Checks the memory of all devices: a write outside of allocations, or after a free, becomes a fault.
void check_memory();

}  // namespace emulated
