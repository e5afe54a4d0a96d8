// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <exception>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include <kvbench/replay/exact/head.hpp>
#include <kvbench/replay/measure/spent.hpp>
#include <kvbench/replay/records/results.hpp>

namespace kvbench::replay {

class KnownCosts;

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
