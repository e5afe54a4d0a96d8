// SPDX-License-Identifier: Apache-2.0
// Devices and threads: the choice of the back end, and the distribution of work items over threads.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include <kvbench/kernels/backend.hpp>
#include <kvbench/replay/plan/request.hpp>

namespace kvbench::replay {

/// The device that computes on this machine.
struct DeviceChoice {
  std::string backend;  ///< cpu, cuda or ref
  std::string note;     ///< why `auto` is not cuda; otherwise empty
};

/// `requested`: cpu, cuda, ref, or auto, which is cuda where a GPU is usable, otherwise cpu. Throws Error with the
/// reason where cuda is requested and cannot be used.
DeviceChoice choose_device(const std::string& requested);

/// The back end that the options specify. Throws std::runtime_error with the reason where it cannot be used.
std::unique_ptr<Backend> make_backend(const RunOptions& options);

/// The number of threads that compute work items: options.threads, or where that is 0 OpenMP's default
/// (OMP_NUM_THREADS, otherwise all processors). On a GPU the default is one thread: it keeps the device busy, and each
/// further thread needs device memory for a head. Never more than OMP_THREAD_LIMIT.
std::size_t thread_count(const RunOptions& options);

/// Calls work(backend, i, part_done) for i = 0 .. count - 1 on thread_count() threads of an OpenMP parallel region;
/// each thread has its own back end. Work items start in ascending order. The first exception on any thread stops the
/// other threads at their next work item and is rethrown. hooks.progress is called after each work item and at each
/// call of part_done.
void run_work_items(std::size_t count, const RunOptions& options, const ReplayHooks& hooks,
                    const std::function<void(Backend&, std::size_t, const PartDone&)>& work);

}  // namespace kvbench::replay
