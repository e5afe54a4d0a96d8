// SPDX-License-Identifier: Apache-2.0
#include <python/extension/worker.hpp>

#include <chrono>
#include <future>
#include <thread>

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <apps/common/rows/progress.hpp>
#include <apps/common/stop_signals.hpp>
#include <apps/kvbench/run_kvbench.hpp>

#include <python/extension/python_object.hpp>

namespace kvbench::python {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds poll(50), grace(1000);

/// The last run, which may have been abandoned.
std::future<int>& running() {
  static auto* run = new std::future<int>;  // never destroyed: its destructor would wait
  return *run;
}

bool ends_within(milliseconds time) {
  const nb::gil_scoped_release release;
  return running().wait_for(time) == std::future_status::ready;
}

/// Calls show(done, total, unit) where it is a function and work is in progress.
void show_progress(const nb::object& show) {
  if (show.is_none()) return;
  const app::ProgressState progress = app::latest_progress();
  if (progress.total > 0) show(progress.done, progress.total, progress.unit);
}

/// Waits until the run ends. Raises KeyboardInterrupt, after at most `grace`, where the user interrupts it.
void wait_for_end(const nb::object& show) {
  while (!ends_within(poll)) {
    if (PyErr_CheckSignals() == 0) {
      show_progress(show);
      continue;
    }
    nb::python_error interrupted;  // takes the exception from Python
    app::request_stop(true);
    interrupt_calls();
    ends_within(grace);
    throw interrupted;
  }
}

}  // namespace

int run_in_thread(std::function<int()> work, const nb::object& show) {
  if (running().valid()) wait_for_end(nb::none());
  app::request_stop(false);
  std::packaged_task<int()> task(std::move(work));
  running() = task.get_future();
  std::thread(std::move(task)).detach();
  wait_for_end(show);
  return running().get();
}

int run_command(const std::vector<std::string>& arguments, const nb::object& show) {
  return run_in_thread([arguments] { return app::run_command(arguments); }, show);
}

void wait_for_worker() {
  while (running().valid() && !ends_within(poll)) {
  }
}

}  // namespace kvbench::python
