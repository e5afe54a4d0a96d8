// SPDX-License-Identifier: Apache-2.0
#include <kvbench/replay/run/workers.hpp>

#include <mutex>
#include <numeric>
#include <vector>

#include <fmt/format.h>

#include <kvbench/core/error.hpp>
#include <kvbench/core/parallel_for.hpp>

namespace kvbench::replay {

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
  return allowed_threads(options.threads == 0 && options.backend == "cuda" ? 1 : options.threads);
}

void run_work_items(std::size_t count, const RunOptions& options, const ReplayHooks& hooks,
                    const std::function<void(Backend&, std::size_t, const PartDone&)>& work) {
  const std::size_t threads = thread_count(options);
  std::vector<std::unique_ptr<Backend>> backends(threads);
  std::vector<double> running(threads, 0.0);  // finished parts of the work items in progress
  std::mutex reporting;
  Index finished = 0;
  const auto report = [&] {
    if (!hooks.progress) return;
    hooks.progress(std::accumulate(running.begin(), running.end(), static_cast<double>(finished)),
                   static_cast<Index>(count));
  };
  const auto run = [&](std::size_t i, std::size_t thread) {
    if (!backends[thread]) backends[thread] = make_backend(options);
    work(*backends[thread], i, [&](double part) {
      const std::lock_guard lock(reporting);
      running[thread] = part;
      report();
    });
    const std::lock_guard lock(reporting);
    running[thread] = 0;
    ++finished;
    report();
  };
  parallel_for(count, threads, run, hooks.note);
}

}  // namespace kvbench::replay
