// SPDX-License-Identifier: Apache-2.0
// The methods of the registry as Markdown: the table of README.md, and a page per method.
#pragma once

#include <string>

#include <kvbench/methods/contract/info.hpp>

namespace kvbench::app {

const char* granularity_name(methods::Granularity granularity);
/// "snapkv[per=query_head]" ... of the variants of these methods, which have rows of their own in --method all.
std::vector<std::string> variant_names(std::span<const methods::MethodInfo> methods);
/// What --method all replays beside every method with its defaults: variants and compositions.
std::vector<std::string> also_replayed();
/// The methods that --method all does not replay.
std::vector<std::string> left_out();

/// The name of a method as a command line has it; of a wrapper around snapkv.
std::string name_in_command(const methods::MethodInfo& method);

/// One row per method and wrapper: name, kind, source, what it keeps.
std::string method_table();
/// The content of MethodInfo, and a command that runs the method.
std::string method_page(const methods::MethodInfo& method);

}  // namespace kvbench::app
