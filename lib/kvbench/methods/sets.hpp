// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <kvbench/methods/registry.hpp>

namespace kvbench::methods {

/// A method and the settings that differ from its defaults.
struct MethodSettings {
  const MethodInfo* info = nullptr;
  std::vector<Assignment> settings;
};

/// The names of all sets: those of families, with one name each, and of engines among them.
std::vector<std::string> set_names();

/// The rows of a set of methods that one name stands for, none if it stands for no set. `all`: every method but
/// oracle-error, duo and duo@kvpress with its defaults, then its variants; then compositions. `families`: the usual
/// methods of every family whose caches can be small, with their defaults, and the same compositions; few enough for
/// several budgets and for runs inside a model. The name of a family (find_family()): its methods but those that `all`
/// leaves out, with their defaults. The name of an engine: what it runs (rows_of_engine()).
std::vector<MethodSettings> rows_of_set(std::string_view name);

}  // namespace kvbench::methods
