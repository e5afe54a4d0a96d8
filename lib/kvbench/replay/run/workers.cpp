// SPDX-License-Identifier: Apache-2.0
#include <kvbench/replay/run/workers.hpp>

#include <algorithm>
#include <atomic>
#include <exception>
#include <future>
#include <mutex>
#include <new>
#include <numeric>
#include <system_error>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <omp.h>

#include <kvbench/core/error.hpp>

namespace kvbench::replay {
namespace {

/// Stores the first exception of any thread.
class Failure {
 public:
  /// Calls `work` unless an exception has been stored. Stores its exception, because none may leave a parallel region.
  template <class F>
  void guard(F work) {
    if (failed_) return;
    try {
      work();
    } catch (...) {
      const std::lock_guard lock(mutex_);
      failed_ = true;
      if (!first_) first_ = std::current_exception();
    }
  }
  void rethrow() const {
    if (first_) std::rethrow_exception(first_);
  }

 private:
  std::atomic<bool> failed_ = false;
  std::mutex mutex_;
  std::exception_ptr first_;
};

/// The number of threads, at most `wanted` and including this one, that the system starts within the limits of the
/// process. OpenMP ends the program where it cannot start a thread.
int startable_threads(int wanted) {
  std::vector<std::thread> started;
  std::promise<void> enough;
  const std::shared_future<void> wait = enough.get_future().share();
  try {
    while (static_cast<int>(started.size()) + 1 < wanted) started.emplace_back([wait] { wait.wait(); });
  } catch (const std::system_error&) {
    // no more threads
  } catch (const std::bad_alloc&) {
    // no more memory
  }
  enough.set_value();
  for (std::thread& thread : started) thread.join();
  return static_cast<int>(started.size()) + 1;
}

}  // namespace

DeviceChoice choose_device(const std::string& requested) {
  if (requested != "cuda" && requested != "auto") return {requested, ""};
  const std::string reason = cuda_unusable();
  if (reason.empty()) return {"cuda", ""};
  if (requested == "cuda")
    throw Error("`backend` is cuda, which cannot be used: {}; set `backend` to cpu, or to auto for the best available",
                reason);
  return {"cpu", fmt::format("`backend` is auto, and cuda cannot be used: {}; computing on the processor", reason)};
}

std::unique_ptr<Backend> make_backend(const RunOptions& options) {
  if (options.backend == "ref") return make_ref_backend();
  if (options.backend == "cuda") return make_cuda_backend();
  return make_cpu_backend(options.isa.value_or(best_isa()));
}

std::size_t thread_count(const RunOptions& options) {
  const int wanted = options.threads > 0 ? options.threads : options.backend == "cuda" ? 1 : omp_get_max_threads();
  return static_cast<std::size_t>(std::min(wanted, omp_get_thread_limit()));
}

void run_work_items(std::size_t count, const RunOptions& options, const ReplayHooks& hooks,
                    const std::function<void(Backend&, std::size_t, const PartDone&)>& work) {
  if (count == 0) return;
  const int wanted = static_cast<int>(std::min(thread_count(options), count)), threads = startable_threads(wanted);
  if (threads < wanted && hooks.note) {
    hooks.note(
        fmt::format("{} of {} threads run: the limits of memory or processes (ulimit) allow no more", threads, wanted));
  }
  Failure failure;
  std::mutex reporting;
  Index finished = 0;
  std::vector<double> running(static_cast<std::size_t>(threads), 0.0);  // finished parts of the work items in progress
  const auto report = [&] {
    if (!hooks.progress) return;
    hooks.progress(std::accumulate(running.begin(), running.end(), static_cast<double>(finished)),
                   static_cast<Index>(count));
  };
#pragma omp parallel num_threads(threads)
  {
    std::unique_ptr<Backend> backend;
    failure.guard([&] { backend = make_backend(options); });
    // "monotonic": work items start in ascending order, as reading ahead requires.
#pragma omp for schedule(monotonic : dynamic) nowait
    for (std::size_t i = 0; i < count; ++i) {
      failure.guard([&] {
        double& part = running[static_cast<std::size_t>(omp_get_thread_num())];
        work(*backend, i, [&](double now) {
          const std::lock_guard lock(reporting);
          part = now;
          report();
        });
        const std::lock_guard lock(reporting);
        part = 0;
        ++finished;
        report();
      });
    }
  }
  failure.rethrow();
}

}  // namespace kvbench::replay
