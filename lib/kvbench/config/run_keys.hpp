// SPDX-License-Identifier: Apache-2.0
// The keys of a [[run]] and of [defaults].
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <kvbench/config/sweep.hpp>

namespace kvbench::config {

/// Sets the keys of a run (all but `name`). Throws Error with its place for unknown keys and bad values.
void set_run(const std::vector<Member>& members, SweepRun& run);

/// Keys whose lists `zip` can join.
const std::vector<std::string>& zip_keys();
/// Length of the list of a key of zip_keys().
std::size_t list_size(const SweepRun& run, const std::string& key);

/// The key that sets a field of ReplayRequest or RunOptions; "" where there is none.
std::string key_of(std::string_view field);

/// A key of a run, as the example shows it.
struct RunKey {
  std::string name, example, doc;
};
std::vector<RunKey> run_keys();

/// Throws Error with the place of an unknown key and the most similar known one.
[[noreturn]] void reject_key(const Member& member, const std::vector<std::string>& known, const std::string& where);

}  // namespace kvbench::config
