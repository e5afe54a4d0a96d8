// SPDX-License-Identifier: Apache-2.0
#include <kvbench/core/parallel_for.hpp>

#include <algorithm>
#include <future>
#include <new>
#include <system_error>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <omp.h>

#include <kvbench/core/first_error.hpp>

namespace kvbench {
namespace {

/// The number of threads, at most `wanted` and including this one, that the system starts within the limits of the
/// process. OpenMP ends the program where it cannot start a thread.
std::size_t startable_threads(std::size_t wanted) {
  std::vector<std::thread> started;
  std::promise<void> enough;
  const std::shared_future<void> wait = enough.get_future().share();
  try {
    while (started.size() + 1 < wanted) started.emplace_back([wait] { wait.wait(); });
  } catch (const std::system_error&) {
    // no more threads
  } catch (const std::bad_alloc&) {
    // no more memory
  }
  enough.set_value();
  for (std::thread& thread : started) thread.join();
  return started.size() + 1;
}

}  // namespace

std::size_t allowed_threads(int wanted) {
  return static_cast<std::size_t>(std::min(wanted > 0 ? wanted : omp_get_max_threads(), omp_get_thread_limit()));
}

void parallel_for(std::size_t count, std::size_t threads,
                  const std::function<void(std::size_t i, std::size_t thread)>& work,
                  const std::function<void(const std::string&)>& note) {
  if (count == 0) return;
  const std::size_t wanted = std::min(threads, count), running = startable_threads(wanted);
  if (running < wanted && note)
    note(
        fmt::format("{} of {} threads run: the limits of memory or processes (ulimit) allow no more", running, wanted));
  FirstError error;
  // "monotonic": calls start in ascending order.
#pragma omp parallel for schedule(monotonic : dynamic) num_threads(static_cast <int>(running))
  for (std::size_t i = 0; i < count; ++i)
    error.attempt([&] { work(i, static_cast<std::size_t>(omp_get_thread_num())); });
  error.rethrow();
}

}  // namespace kvbench
