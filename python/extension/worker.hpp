// SPDX-License-Identifier: Apache-2.0
// A subcommand, or other work, in a thread of its own, so that the thread of Python that waits for it sees Ctrl-C.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <nanobind/nanobind.h>

namespace kvbench::python {

namespace nb = nanobind;

/// Runs work() without the GIL and returns what it returns. Calls show(done, total, unit) while it works, unless it is
/// None. Raises what it throws, and KeyboardInterrupt within 1.5 seconds of Ctrl-C: what is then still computing goes
/// on in the background until its next check, and the next call waits for it.
int run_in_thread(std::function<int()> work, const nb::object& show);
/// The same with a subcommand, whose exit code it returns.
int run_command(const std::vector<std::string>& arguments, const nb::object& show);

/// Waits for what an interrupted call has left behind, which must not outlive Python.
void wait_for_worker();

}  // namespace kvbench::python
