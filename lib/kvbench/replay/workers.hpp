// SPDX-License-Identifier: Apache-2.0
// Work that is split into units, on several threads with a backend each.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include <kvbench/kernels/backend.hpp>
#include <kvbench/replay/plan/request.hpp>

namespace kvbench {

/// What --device means on this machine.
struct DeviceChoice {
  std::string backend;  ///< cpu, cuda or ref
  std::string note;     ///< why `auto` is not cuda; else empty
};

/// `asked`: cpu, cuda, ref, or auto, which is cuda where a GPU is usable, else cpu. Throws Error where cuda is asked for and
/// cannot be had, and says why.
DeviceChoice choose_device(const std::string& asked);

/// The backend that the request asks for. Throws std::runtime_error naming the reason where it cannot be had.
std::unique_ptr<Backend> make_backend(const ReplayRequest& request);

/// Threads that compute units: request.threads, or by default all processors; one on a GPU, whose memory each further worker
/// would multiply while one keeps it busy.
std::size_t worker_count(const ReplayRequest& request);

/// Calls work(backend, u) for u = 0 .. units - 1, in order of start, on worker_count() threads. The first exception stops the
/// others at their next unit and is thrown. hooks.progress hears of every unit that is done.
void run_units(std::size_t units, const ReplayRequest& request, const ReplayHooks& hooks,
               const std::function<void(Backend&, std::size_t)>& work);

}  // namespace kvbench
