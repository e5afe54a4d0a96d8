// SPDX-License-Identifier: Apache-2.0
// The choice of the back end and of the number of threads.
#pragma once

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

/// The number of threads that compute work items: allowed_threads(options.threads). On a GPU the default is one thread:
/// it keeps the device busy, and each further thread needs device memory for a head.
std::size_t thread_count(const RunOptions& options);

}  // namespace kvbench::replay
