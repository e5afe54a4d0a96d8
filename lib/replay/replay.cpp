// SPDX-License-Identifier: Apache-2.0
#include <kvbench/replay/replay.hpp>

#include <algorithm>
#include <mutex>
#include <thread>

#include <kvbench/replay/unit.hpp>

namespace kvbench {
namespace {

std::unique_ptr<Backend> make_backend(const ReplayRequest& request) {
  if (request.backend == "ref") return make_ref_backend();
  if (request.backend == "cuda") return make_cuda_backend();
  return make_cpu_backend(request.isa.value_or(best_isa()));
}

ReplayResults empty_results(const trace::TraceInfo& trace, const ReplayPlan& plan) {
  ReplayResults results;
  results.cells = plan.cells;
  results.protocols.resize(trace.prompts.size(), Protocol::automatic);
  for (const PromptPlan& prompt : plan.prompts) results.protocols[prompt.prompt] = prompt.protocol;
  for (const HeadPlace& place : plan.heads) {
    const auto plan_of = std::ranges::find(plan.prompts, place.prompt, &PromptPlan::prompt);
    const auto& all = trace.prompts[place.prompt].layers[place.layer].query_positions;
    results.heads.push_back({.place = place,
                             .positions = {std::ranges::lower_bound(all, plan_of->context), all.end()},
                             .cells = std::vector<CellResult>(plan.cells.size())});
  }
  return results;
}

/// Hands out units in order to workers; the first exception stops all of them.
class Workers {
 public:
  Workers(const trace::Reader& reader, const ReplayRequest& request, const ReplayHooks& hooks, const ReplayPlan& plan,
          ReplayResults& results)
      : reader_(reader), request_(request), hooks_(hooks), plan_(plan), results_(results) {}

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
      for (std::size_t u; !failed_ && (u = next_.fetch_add(1)) < plan_.units.size();) {
        run_unit(reader_, plan_, plan_.units[u], request_, *backend, hooks_.stop, results_);
        const std::lock_guard lock(mutex_);
        ++done_;
        if (hooks_.progress) hooks_.progress(done_, static_cast<Index>(plan_.units.size()));
      }
    } catch (...) {
      const std::lock_guard lock(mutex_);
      failed_ = true;
      if (!failure_) failure_ = std::current_exception();
    }
  }

  const trace::Reader& reader_;
  const ReplayRequest& request_;
  const ReplayHooks& hooks_;
  const ReplayPlan& plan_;
  ReplayResults& results_;
  std::atomic<std::size_t> next_ = 0;
  std::atomic<bool> failed_ = false;
  std::mutex mutex_;
  Index done_ = 0;
  std::exception_ptr failure_;
};

}  // namespace

ReplayResults replay(const trace::Reader& reader, const ReplayRequest& request, const ReplayHooks& hooks) {
  const ReplayPlan plan = make_plan(reader.info(), request);
  ReplayResults results = empty_results(reader.info(), plan);
  {
    const std::unique_ptr<Backend> backend = make_backend(request);
    results.device = backend->device();
    results.isa = backend->isa();
  }
  const std::size_t wanted =
      request.threads > 0 ? static_cast<std::size_t>(request.threads) : std::max(1u, std::thread::hardware_concurrency());
  Workers(reader, request, hooks, plan, results).run(std::min(wanted, plan.units.size()));
  return results;
}

}  // namespace kvbench
