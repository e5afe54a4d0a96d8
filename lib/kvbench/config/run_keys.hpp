// SPDX-License-Identifier: Apache-2.0
// The keys of a [[run]] and of [defaults].
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <kvbench/config/sweep.hpp>

namespace kvbench::config {

/// Sets in `run` what each member says. Throws Error with the place for unknown keys and bad values. `name` is no key here.
void set_run(const std::vector<Member>& members, SweepRun& run);

/// Keys of a run whose lists `zip` can pair.
const std::vector<std::string>& zip_keys();
/// How many items the list of a key of zip_keys() has.
std::size_t list_size(const SweepRun& run, const std::string& key);

/// The key that sets a field of ReplayRequest or RunOptions; "" where only the caller can set it.
std::string key_of(std::string_view field);

/// A key of a run, as the example and the documentation show it.
struct RunKey {
  const char *name, *example, *doc;
};
std::vector<RunKey> run_keys();

/// Throws Error with the place of the key and the nearest of the known ones.
[[noreturn]] void reject_key(const Member& member, const std::vector<std::string>& known, const std::string& where);

}  // namespace kvbench::config
