// SPDX-License-Identifier: Apache-2.0
#include <kvbench/methods/merging/chelsea.hpp>

#include <algorithm>

#include <kvbench/methods/merging/outlier_heads.hpp>
#include <kvbench/methods/stages/kept_cache.hpp>
#include <kvbench/methods/stages/rows.hpp>
#include <kvbench/methods/stages/wrapped_cache.hpp>

namespace kvbench::methods {
namespace {

/// The heads of the layer that are kept whole, and the numbers from which the budget of the others follows.
struct Outliers {
  std::vector<bool> whole;  ///< by kv head of the layer
  Index full = 0, heads = 0;
};

Outliers listed_outliers(std::span<const HeadPrompt> layer, const std::string& path) {
  const std::vector<OutlierHead> listed = read_outlier_heads(path);
  const HeadPrompt& any = layer.front();
  for (const OutlierHead& head : listed) {
    if (head.layer < any.num_layers && head.kv_head < any.num_kv_heads) continue;
    throw Error("{}: the model has {} layers of {} kv heads, and no layer {} with kv head {}", path, any.num_layers,
                any.num_kv_heads, head.layer, head.kv_head);
  }
  Outliers outliers{.full = std::ssize(listed), .heads = any.num_caches * any.num_kv_heads};
  for (const HeadPrompt& head : layer) {
    outliers.whole.push_back(std::ranges::binary_search(listed, OutlierHead{head.layer.value, head.head.value}));
  }
  return outliers;
}

Outliers worst_outliers(std::vector<ContextRounds>& layer, const ChelseaParams& params) {
  std::vector<LinkQuality> qualities;
  for (ContextRounds& head : layer) {
    const Index n = head.head().tokens();
    const MergingParts parts = merging_parts(params.merging, n);
    const auto& links = head.rounds(parts).first_links();
    const Index linking = linking_slots(head.rule(), n - parts.sinks - parts.recent);
    qualities.push_back(link_quality(links, linking, params.outlier_threshold));
  }
  Outliers outliers{.whole = std::vector<bool>(layer.size()), .heads = std::ssize(layer)};
  for (const Index head : worst_linked(qualities, params.outlier_ratio)) {
    outliers.whole[static_cast<std::size_t>(head)] = true;
    ++outliers.full;
  }
  return outliers;
}

Outliers outliers_of(std::span<const HeadPrompt> heads, std::vector<ContextRounds>& rounds,
                     const ChelseaParams& params) {
  if (params.outliers == "none") return {.whole = std::vector<bool>(heads.size()), .heads = std::ssize(heads)};
  if (heads.front().tokens() == 0) {
    throw Unavailable(
        "outlier heads keep the whole context at the cost of the other heads, but a stream has no context; use "
        "chelsea.outliers=none");
  }
  return params.outliers == "auto" ? worst_outliers(rounds, params) : listed_outliers(heads, params.outliers);
}

/// What the row says of the layer.
std::vector<Note> notes_on(const Outliers& outliers) {
  std::vector<Note> notes;
  if (const auto whole = std::ranges::count(outliers.whole, true); whole > 0)
    notes.push_back({"outlier heads kept whole (recall is that of these heads only)", static_cast<double>(whole)});
  if (outliers.heads > std::ssize(outliers.whole))
    notes.push_back(
        {"the budget of outlier heads is taken from all heads of the model, including layers outside the trace"});
  return notes;
}

Caches make_caches(std::vector<ContextRounds>& rounds, const Outliers& outliers, Index budget) {
  const Index n = rounds.front().head().tokens();
  const Index shared = budget_beside_outliers(budget, outliers.heads, outliers.full, n);
  Caches caches;
  for (std::size_t h = 0; h < rounds.size(); ++h) {
    if (outliers.whole[h])
      caches.push_back(
          std::make_unique<KeptCache>(rounds[h].backend(), rounds[h].head(), KeptTokens{.ids = token_range(0, n)}));
    else
      caches.push_back(std::make_unique<MergingCache>(rounds[h], shared));
  }
  caches.front() = std::make_unique<WrappedCache>(std::move(caches.front()), notes_on(outliers));
  return caches;
}

MakeCaches prepare(std::span<const HeadPrompt> heads, const ChelseaParams& params, Backend& backend) {
  const auto rounds = std::make_shared<std::vector<ContextRounds>>();
  for (const HeadPrompt& head : heads) {
    rounds->emplace_back(head, MergeRule{.chunk = params.chunk, .order = params.order}, params.merging, backend);
  }
  return [rounds, outliers = outliers_of(heads, *rounds, params)](Index budget, std::uint32_t /*seed*/) {
    return make_caches(*rounds, outliers, budget);
  };
}

}  // namespace

void fields(ParamVisitor& visitor, ChelseaParams& params) {
  fields(visitor, params.merging);
  visitor.integer("chunk", params.chunk, {.min = 2}, "entries among which partners are searched");
  fields(visitor, params.order);
  visitor.text("outliers", params.outliers, "none|auto|FILE",
               "heads that keep every token, at the cost of the others; FILE has lines \"layer kv_head\"");
  visitor.real("outlier_ratio", params.outlier_ratio, {.min = 0, .max = 1},
               "share of the layer's heads, rounded up (auto)");
  visitor.real("outlier_threshold", params.outlier_threshold, {.min = -1, .max = 1},
               "cosine above which a token counts as linked (auto)");
}

void check(const ChelseaParams& params) {
  if (params.outliers != "none" && params.outliers != "auto") read_outlier_heads(params.outliers);
}

MethodInfo chelsea_method() {
  Properties properties = merging_properties();
  properties.equal_bytes = Property::no("outliers=FILE: layers have different numbers of whole heads");
  return with_params<ChelseaParams>(
      {
          .name = "chelsea",
          .aliases = {"csm", "centroidkv"},
          .paper = "Chelsea (CentroidKV), arXiv 2506.11418, section 5 and Algorithm 1",
          .summary = "similar keys of a chunk, merged into centroids weighted by their number of tokens",
          .notes = "Numbers lost in the text are parameters: the schedule of rounds (ratio, decay, floor), the slack "
                   "of decoding and the threshold of outlier heads. The paper keeps 4 % of the model's heads whole by "
                   "offline calibration (outliers=FILE); the default keeps none, because one layer has too few heads "
                   "for a share of 4 %.",
          .complexity = {.compress = {"O(n chunk d / 4)", 1}, .memory = {"B (d + dv) + B"}},
          .kind = Kind::merging,
          .granularity = Granularity::layer,
          .streaming = true,
          .properties = properties,
          .independent_heads = [](const Params& params) { return params.as<ChelseaParams>().outliers == "none"; },
      },
      prepare);
}

}  // namespace kvbench::methods
