// SPDX-License-Identifier: Apache-2.0
#include <kvbench/replay/plan/needs.hpp>

#include <algorithm>

#include <fmt/format.h>

namespace kvbench {
namespace {

std::optional<std::string> lacking_part(Part part, const trace::LayerInfo& layer, Index begin, Index end) {
  const auto& positions = layer.query_positions;
  const auto observed = std::ranges::lower_bound(positions, begin);
  switch (part) {
    case Part::observed_queries:
      if (observed != positions.end() && *observed < end) return std::nullopt;
      return "the trace has no queries inside the context; dump with --queries all, or last:N with N above the window";
    case Part::column_sums:
      if (layer.column_sums_end == end) return std::nullopt;
      return fmt::format("the trace has no column sums up to the end of the context ({} tokens); dump with --column-sums", end);
    case Part::keys_pre_rope:
      if (layer.keys_pre_rope) return std::nullopt;
      return "the trace has no pre-RoPE keys; dump with --pre-rope";
    case Part::speculated_queries:
      if (layer.speculated_queries) return std::nullopt;
      return "the trace has no speculated queries; dump with --speculated";
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> lacking(const MethodInfo& info, const trace::LayerInfo& layer, Index begin, Index end) {
  if (layer.softcap != 0) {
    return fmt::format("layer {} caps its logits at {}, which replays do not support", layer.layer, layer.softcap);
  }
  if (layer.window > 0 && !info.windowed) {
    return fmt::format("layer {} has a sliding window of {} tokens, which {} does not model", layer.layer, layer.window,
                       info.name);
  }
  for (const Part part : info.needs) {
    if (auto reason = lacking_part(part, layer, begin, end)) return reason;
  }
  return std::nullopt;
}

}  // namespace kvbench
