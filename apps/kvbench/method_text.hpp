// SPDX-License-Identifier: Apache-2.0
// What `kvbench methods` says of the methods of the registry, in words.
#pragma once

#include <optional>
#include <string>

#include <kvbench/methods/contract/info.hpp>

namespace kvbench::app {

/// A line per method and wrapper, or per method of a kind: name, kind, what it keeps.
std::string list_text(std::optional<methods::Kind> kind = {});
/// The same as Markdown, with sources: docs/methods.md.
std::string method_table();
/// The content of MethodInfo, and a command that runs the method.
std::string details(const methods::MethodInfo& method);

}  // namespace kvbench::app
