// SPDX-License-Identifier: Apache-2.0
// Loops on the threads of OpenMP.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

namespace kvbench {

/// The number of threads that `wanted` means: 0 is OpenMP's default (OMP_NUM_THREADS, otherwise all processors). Never
/// more than OMP_THREAD_LIMIT.
std::size_t allowed_threads(int wanted);

/// Calls work(i, thread) for i = 0 .. count - 1, each once, in an OpenMP parallel region of `threads` threads, or of
/// `count` where that is less; `thread` is the number of the calling thread, from 0. Calls start in ascending order of
/// i. The first exception of any call stops the other threads before their next call and is rethrown. Where the limits
/// of the process allow fewer threads, these run, and `note` receives a sentence about it.
void parallel_for(std::size_t count, std::size_t threads,
                  const std::function<void(std::size_t i, std::size_t thread)>& work,
                  const std::function<void(const std::string&)>& note = {});

}  // namespace kvbench
