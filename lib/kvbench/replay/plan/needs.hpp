// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include <kvbench/methods/contract/info.hpp>
#include <kvbench/trace/schema.hpp>

namespace kvbench {

/// Why the method cannot run on this layer of a trace, with the remedy; nothing where it can. The method's context is the
/// tokens [begin, end).
std::optional<std::string> lacking(const MethodInfo& info, const trace::LayerInfo& layer, Index begin, Index end);

}  // namespace kvbench
