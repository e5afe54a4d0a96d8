// SPDX-License-Identifier: Apache-2.0
#include <kvbench/replay/workers.hpp>

#include <algorithm>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include <kvbench/core/error.hpp>

namespace kvbench {
namespace {

/// Hands out units in order to workers.
class Crew {
 public:
  Crew(std::size_t units, const ReplayRequest& request, const ReplayHooks& hooks,
          const std::function<void(Backend&, std::size_t)>& work)
      : units_(units), request_(request), hooks_(hooks), work_(work) {}

  void run(std::size_t threads) {
    std::vector<std::thread> pool;
    for (std::size_t t = 1; t < threads; ++t) pool.emplace_back([this] { work(); });
    work();
    for (std::thread& thread : pool) thread.join();
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  void work() {
    try {
      const std::unique_ptr<Backend> backend = make_backend(request_);
      for (std::size_t u; !failed_ && (u = next_.fetch_add(1)) < units_;) {
        work_(*backend, u);
        const std::lock_guard lock(mutex_);
        ++done_;
        if (hooks_.progress) hooks_.progress(done_, static_cast<Index>(units_));
      }
    } catch (...) {
      const std::lock_guard lock(mutex_);
      failed_ = true;
      if (!failure_) failure_ = std::current_exception();
    }
  }

  std::size_t units_;
  const ReplayRequest& request_;
  const ReplayHooks& hooks_;
  const std::function<void(Backend&, std::size_t)>& work_;
  std::atomic<std::size_t> next_ = 0;
  std::atomic<bool> failed_ = false;
  std::mutex mutex_;
  Index done_ = 0;
  std::exception_ptr failure_;
};

}  // namespace

DeviceChoice choose_device(const std::string& asked) {
  if (asked != "cuda" && asked != "auto") return {asked, ""};
  const std::string reason = cuda_unusable();
  if (reason.empty()) return {"cuda", ""};
  if (asked == "cuda") throw Error("--device cuda: {}; use --device cpu, or auto for whatever there is", reason);
  return {"cpu", fmt::format("--device auto: {}; computing on the processor", reason)};
}

std::unique_ptr<Backend> make_backend(const ReplayRequest& request) {
  if (request.backend == "ref") return make_ref_backend();
  if (request.backend == "cuda") return make_cuda_backend();
  return make_cpu_backend(request.isa.value_or(best_isa()));
}

std::size_t worker_count(const ReplayRequest& request) {
  if (request.threads > 0) return static_cast<std::size_t>(request.threads);
  return request.backend == "cuda" ? 1 : std::max(1u, std::thread::hardware_concurrency());
}

void run_units(std::size_t units, const ReplayRequest& request, const ReplayHooks& hooks,
               const std::function<void(Backend&, std::size_t)>& work) {
  Crew(units, request, hooks, work).run(std::min(worker_count(request), units));
}

}  // namespace kvbench
