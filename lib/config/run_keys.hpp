// SPDX-License-Identifier: Apache-2.0
// The keys of a [[run]] and of [defaults].
#pragma once

#include <string>
#include <vector>

#include <kvbench/config/sweep.hpp>

namespace kvbench::config {

/// Sets in `run` what each member says. Throws Error with the place for unknown keys and bad values. `name` is no key here.
void set_run(const std::vector<Member>& members, SweepRun& run);

/// Throws Error with the place of the key and the nearest of the known ones.
[[noreturn]] void reject_key(const Member& member, const std::vector<std::string>& known, const std::string& where);

}  // namespace kvbench::config
