// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include <kvbench/methods/contract/info.hpp>
#include <kvbench/trace/schema.hpp>

namespace kvbench {

/// The reason why the method cannot run on this layer of a trace, with the remedy; absent where it can. The context of the
/// method is the tokens [begin, end).
std::optional<std::string> lacking(const MethodInfo& info, const trace::LayerInfo& layer, Index begin, Index end);

}  // namespace kvbench
