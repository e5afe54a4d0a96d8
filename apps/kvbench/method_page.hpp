// SPDX-License-Identifier: Apache-2.0
// What the registry knows of its methods as Markdown: README's table, and a page for each method (docs/methods, by
// scripts/docs).
#pragma once

#include <string>

#include <kvbench/methods/contract/info.hpp>

namespace kvbench::app {

const char* granularity_name(Granularity granularity);

/// One line a method: name, kind, source, what it keeps.
std::string method_table();
/// Everything that MethodInfo says, and a command that runs the method.
std::string method_page(const MethodInfo& method);

}  // namespace kvbench::app
