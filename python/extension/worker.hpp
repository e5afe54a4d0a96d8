// SPDX-License-Identifier: Apache-2.0
// A subcommand in a thread of its own, so that the thread of Python that waits for it sees Ctrl-C.
#pragma once

#include <string>
#include <vector>

#include <nanobind/nanobind.h>

namespace kvbench::python {

namespace nb = nanobind;

/// Runs a subcommand without the GIL and returns its exit code. Calls show(done, total, unit) while it works, unless it
/// is None. Raises what it throws, and KeyboardInterrupt within 1.5
/// seconds of Ctrl-C: what is then still computing goes on in the background until its next check, and the next call
/// waits for it.
int run_command(const std::vector<std::string>& arguments, const nb::object& show);

/// Waits for what an interrupted call has left behind, which must not outlive Python.
void wait_for_worker();

}  // namespace kvbench::python
