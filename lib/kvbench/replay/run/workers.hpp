// SPDX-License-Identifier: Apache-2.0
// Devices and threads: which back end computes, and how work items are shared out among threads.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include <kvbench/kernels/backend.hpp>
#include <kvbench/replay/plan/request.hpp>

namespace kvbench {

/// The device that computes on this machine.
struct DeviceChoice {
  std::string backend;  ///< cpu, cuda or ref
  std::string note;     ///< why `auto` is not cuda; else empty
};

/// `asked`: cpu, cuda, ref, or auto, which is cuda where a GPU is usable, else cpu. Throws Error with the reason where cuda is
/// asked for and cannot be used.
DeviceChoice choose_device(const std::string& asked);

/// The back end that the options name. Throws std::runtime_error with the reason where it cannot be used.
std::unique_ptr<Backend> make_backend(const RunOptions& options);

/// The number of threads that compute work items: options.threads, or where that is 0 OpenMP's default (OMP_NUM_THREADS,
/// else all processors). On a GPU the default is one thread, which suffices to keep the device busy, while each thread needs
/// device memory for a head. Never more than OMP_THREAD_LIMIT.
std::size_t thread_count(const RunOptions& options);

/// Calls work(backend, i) for i = 0 .. count - 1 on thread_count() threads of an OpenMP parallel region; each thread has a
/// back end of its own. Work items start in ascending order. The first exception on any thread stops the other threads at
/// their next work item and is rethrown. hooks.progress is called after each work item.
void run_work_items(std::size_t count, const RunOptions& options, const ReplayHooks& hooks,
                    const std::function<void(Backend&, std::size_t)>& work);

}  // namespace kvbench
