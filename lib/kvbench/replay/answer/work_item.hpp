// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <exception>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>

#include <kvbench/replay/exact/head.hpp>
#include <kvbench/replay/measure/spent.hpp>
#include <kvbench/replay/records/results.hpp>

namespace kvbench::replay {

/// What caches cost whose bytes follow from the shapes (methods::Properties::equal_bytes), by text that holds all from
/// which they follow. Shared by the work items of one request and model, and by threads.
class KnownCosts {
 public:
  std::optional<double> find(const std::string& key) const {
    const std::lock_guard lock(mutex_);
    const auto found = costs_.find(key);
    return found == costs_.end() ? std::nullopt : std::optional(found->second);
  }

  /// compute() where the cost is not known. Threads that ask at the same time compute the same: it is a function of the
  /// key, so that no row depends on the rows beside it, or on which thread came first.
  template <class F>
  double at(const std::string& key, F compute) {
    if (const auto known = find(key)) return *known;
    const double cost = compute();
    const std::lock_guard lock(mutex_);
    return costs_.try_emplace(key, cost).first->second;
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::string, double> costs_;
};

/// The result of prepare() for a method, or its failure.
struct PreparedMethod {
  MethodChoice method;
  methods::MakeCaches make;
  std::exception_ptr failure;
  Spent spent;
};

/// What is replayed, and where a work item leaves its results.
struct WorkItemTask {
  const trace::TraceInfo& trace;
  const ReplayPlan& plan;
  const ReplayRequest& request;
  const RunOptions& options;
  const WorkItem& item;
  std::span<HeadResult> results;  ///< one per head of the item
  const std::atomic<bool>* stop;  ///< as ReplayHooks::stop
  PartDone part_done = [](double) {};
  std::function<void(const std::string&)> failure = [](const std::string&) {};  ///< as ReplayHooks::failure
  /// Holds the last method that was prepared, for later runs of the same work item with the same context, backend and
  /// methods; null: it is freed when it is not needed any more.
  std::optional<PreparedMethod>* kept = nullptr;
  /// Of this request and model, for all work items; null: every work item searches the budgets of its own.
  KnownCosts* costs = nullptr;
};

/// The caches of a configuration, which have not answered yet.
struct OpenCaches {
  std::vector<Head> heads;
  bool observes = false;   ///< the caches want to observe() each decode step
  methods::Caches caches;  ///< none where the configuration has ended; WorkItemTask::results say why
};
/// Makes the caches of the first configuration of a work item, as run_work_item() does. Throws as it does.
OpenCaches open_caches(const WorkItemTask& task, std::vector<HeadSlabs> slabs, Backend& backend);

/// Runs the configurations of a work item, whose heads are in `slabs`. Faults of a method become statuses of its
/// configurations; memory exhaustion, I/O errors and interruption are thrown.
void run_work_item(const WorkItemTask& task, std::vector<HeadSlabs> slabs, Backend& backend);

}  // namespace kvbench::replay
