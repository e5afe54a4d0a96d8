// SPDX-License-Identifier: Apache-2.0
// Work that is split into units, on several threads with a backend each.
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

/// `asked`: cpu, cuda, ref, or auto, which is cuda where a GPU is usable, else cpu. Throws Error where cuda is asked for and
/// cannot be had, and says why.
DeviceChoice choose_device(const std::string& asked);

/// The backend that the options ask for. Throws std::runtime_error naming the reason where it cannot be had.
std::unique_ptr<Backend> make_backend(const RunOptions& options);

/// Threads that compute units: options.threads, or where it is 0 what OpenMP takes (OMP_NUM_THREADS, else all processors); on a
/// GPU one, which keeps it busy, while each further one would need device memory for a head of its own. Never more than
/// OMP_THREAD_LIMIT.
std::size_t worker_count(const RunOptions& options);

/// Calls work(backend, u) for u = 0 .. units - 1 on worker_count() threads of an OpenMP parallel region, each with a backend of
/// its own. Units start in this order. The first exception of any thread stops the others at their next unit and is thrown.
/// hooks.progress is called after each unit.
void run_units(std::size_t units, const RunOptions& options, const ReplayHooks& hooks,
               const std::function<void(Backend&, std::size_t)>& work);

}  // namespace kvbench
