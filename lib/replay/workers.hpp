// SPDX-License-Identifier: Apache-2.0
// Work that is split into units, on several threads with a backend each.
#pragma once

#include <functional>
#include <memory>

#include <kvbench/kernels/backend.hpp>
#include <kvbench/replay/request.hpp>

namespace kvbench {

/// The backend that the request asks for.
std::unique_ptr<Backend> make_backend(const ReplayRequest& request);

/// Calls work(backend, u) for u = 0 .. units - 1, in order of start, on request.threads threads. The first exception stops the
/// others at their next unit and is thrown. hooks.progress hears of every unit that is done.
void run_units(std::size_t units, const ReplayRequest& request, const ReplayHooks& hooks,
               const std::function<void(Backend&, std::size_t)>& work);

}  // namespace kvbench
