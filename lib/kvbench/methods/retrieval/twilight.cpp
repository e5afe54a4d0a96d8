// SPDX-License-Identifier: Apache-2.0
// twilight: the tokens that quest selects for a query are pruned to those that hold a share p of its attention, which
// is estimated with keys in 4 bits. How many answer therefore depends on the query. Twilight, arXiv 2502.02770, section
// 4; tsinghua-ideal/Twilight, twilight/pyimpl (configuration config_quest_twi.json).
//
// quest takes its pages with the budget B (8192 tokens in the released configuration). Logits of its tokens follow from
// keys of which each channel is round((k - min) / s) s + min, s = (max - min) / 15, min and max over the channels of a
// token. Of their softmax over quest's tokens, each query head keeps the largest weights until they sum to p, ties to
// the lower token. The exact keys of what is left answer.
//
// Parameters:
//   p     share of the estimated attention, default 0.85 (released configuration)
//   page, min_pages, last_page, per, reduce   as in quest.hpp; the released configuration has pages of 16 and at least
//         one, here at least 3 as in quest
// Complexity: that of quest with B tokens, and per query and query head O(n d) for the estimated logits of all tokens,
// which budgets share: for a block of queries this is faster than those of the B tokens that each of them selects.
// Memory: that of quest, and d / 2 + 4 bytes a token for the keys in 4 bits, of which B tokens are read per query head.
// Deviations: the released code leaves the first two layers whole (--dense-layers 2). Scale and minimum are stored in
// 16 bits. The released selection rounds a budget up to whole pages, quest down.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include <kvbench/methods/retrieval/methods.hpp>
#include <kvbench/methods/retrieval/quest.hpp>
#include <kvbench/methods/stages/kept_cache.hpp>
#include <kvbench/methods/stages/per_block.hpp>
#include <kvbench/methods/stages/rows.hpp>

namespace kvbench::methods {
namespace {

struct TwilightParams {
  double p = 0.85;
  QuestParams quest;
};
void fields(ParamVisitor& visitor, TwilightParams& params) {
  visitor.real("p", params.p, {.min = 0, .max = 1}, "share of the estimated attention that is kept");
  fields(visitor, params.quest);
}

constexpr int index_bits = 4;

/// Keys as their codes decode.
Buffer<const float> rounded(const Buffer<const float>& keys, Backend& backend) {
  const Index n = keys.rows(), d = keys.cols();
  const kernels::GroupFormat format{.group = d, .scale = kernels::Scale::range, .peak = 15, .bits = index_bits};
  const auto numbers = [&] { return backend.allocate<float>(format.scale_rows(n), format.scale_cols(d)); };
  const kernels::GroupScales<Buffer> scales{.rows = keys,
                                            .format = format,
                                            .scale = numbers(),
                                            .inverse = numbers(),
                                            .offset = numbers(),
                                            .stored_scale = numbers(),
                                            .stored_offset = numbers()};
  backend.run(scales);
  const auto codes = backend.allocate<std::uint8_t>(n, d);
  backend.run(kernels::EncodeGroups<Buffer>{.rows = keys,
                                            .format = format,
                                            .scale = scales.scale,
                                            .inverse = scales.inverse,
                                            .offset = scales.offset,
                                            .codes = codes});
  const auto out = backend.allocate<float>(n, d);
  backend.run(kernels::DecodeGroups<Buffer>{
      .codes = codes, .format = format, .scale = scales.stored_scale, .offset = scales.stored_offset, .out = out});
  return out;
}

/// The last place that is needed for `share` of the sum of all weights, from 0 to 1, if the largest are taken first,
/// ties to the lower place. Weights are added up by their leading bits, so that few of them are compared.
std::size_t last_needed(const std::vector<double>& weights, double share) {
  const auto bucket = [](double w) { return std::bit_cast<std::uint32_t>(static_cast<float>(w)) >> 19; };
  std::vector<double> sums(bucket(1) + 1, 0);
  for (const double w : weights) sums[bucket(w)] += w;
  double left = share * std::accumulate(weights.begin(), weights.end(), 0.0);
  const std::size_t lowest = bucket(*std::ranges::min_element(weights));
  std::size_t last = sums.size() - 1;
  while (last > lowest && sums[last] < left) left -= sums[last--];
  std::vector<std::pair<double, std::size_t>> edge;  // falling weights sort before lower ones
  for (std::size_t place = 0; place < weights.size(); ++place)
    if (bucket(weights[place]) == last) edge.emplace_back(-weights[place], place);
  std::ranges::sort(edge);
  std::size_t needed = 0;
  while (needed + 1 < edge.size() && (left += edge[needed].first) > 0) ++needed;
  return edge[needed].second;
}

/// Estimated logits of all tokens, of all budgets.
using Logits = PerBlock<Buffer<const float>>;

class TwilightCache : public HeadCache {
 public:
  TwilightCache(std::unique_ptr<CompressedCache> quest, const HeadPrompt& head, Buffer<const float> keys,
                std::shared_ptr<Logits> logits, const TwilightParams& params, Index budget, Backend& backend)
      : HeadCache(head, backend),
        quest_(std::move(quest)),
        params_(params),
        budget_(budget),
        scale_(head.scale),
        keys_(backend, std::move(keys)),
        logits_(std::move(logits)) {}

  Index takes(const TokenBlock& tokens) override { return quest_->takes(tokens); }
  void append(const TokenBlock& tokens) override {
    quest_->append(tokens);
    copy_rows(rounded(tokens.keys, backend_), keys_.add(tokens.size()), backend_);
  }

  EntryTables entries(const QueryBlock& queries) const override {
    EntryTables tables = quest_->entries(queries);
    if (tables.empty()) return {};
    return {pruned(queries, tables.front())};
  }

  Footprint footprint() const override {
    Footprint arrays = quest_->footprint();
    const Index tokens = keys_.rows().rows();
    const auto of_quest = static_cast<double>(arrays.back().rows * params_.quest.page);  // in its chosen pages
    const auto add = [&](const char* name, Element element, Index cols) {
      arrays.push_back({.name = name,
                        .element = element,
                        .rows = tokens,
                        .cols = cols,
                        .read = Read::with_entry,
                        .content = Content::meta,
                        .share = 0,
                        .extra = of_quest});
    };
    add("keys in 4 bits", packed(index_bits), d_);
    add("their scales and minima", Element::f16, 2);
    arrays.push_back(chosen_tokens(group_ * std::min(budget_, tokens)));
    return arrays;
  }

  TokenRange retrievable() const override { return quest_->retrievable(); }

 private:
  /// Estimated logits of all tokens, [G*m, tokens].
  Buffer<const float> estimated(const QueryBlock& queries) const {
    std::vector<std::int32_t> last = backend_.read(queries.last);
    for (std::int32_t& end : last) end = std::min(end, static_cast<std::int32_t>(keys_.rows().rows()));
    return scored_rows(queries.queries, keys_.rows(), std::move(last), scale_, backend_).scores;
  }

  /// Of the slots from `begin` to `end` those that are kept. `logits` are by token, and a query reads none before
  /// token `first`.
  std::vector<std::size_t> kept(const HostView<std::int32_t>& ids, std::size_t begin, std::size_t end,
                                const float* logits, std::int32_t first) const {
    std::vector<std::size_t> slots;
    float max = -std::numeric_limits<float>::infinity();
    for (std::size_t s = begin; s < end; ++s) {
      if (ids[s] < 0 || ids[s] < first || !std::isfinite(logits[ids[s]])) continue;  // unused, or not visible
      slots.push_back(s);
      max = std::max(max, logits[ids[s]]);
    }
    if (slots.empty()) return slots;
    std::vector<double> weights;
    for (const std::size_t s : slots) weights.push_back(std::exp(static_cast<double>(logits[ids[s]] - max)));
    const std::size_t last = last_needed(weights, params_.p);
    std::size_t count = 0;
    for (std::size_t k = 0; k < slots.size(); ++k)
      if (weights[k] > weights[last] || (weights[k] == weights[last] && k <= last)) slots[count++] = slots[k];
    slots.resize(count);
    return slots;
  }

  EntryTable pruned(const QueryBlock& queries, const EntryTable& table) const {
    const Index rows = queries.queries.rows(), m = queries.size(), tokens = keys_.rows().rows();
    const auto width = static_cast<std::size_t>(table.ids.cols());
    const HostView<float> logits = backend_.on_host(logits_->of(queries, tokens, [&] { return estimated(queries); }));
    const HostView<std::int32_t> ids = backend_.on_host(table.ids), pages = backend_.on_host(table.cluster_ids),
                                 first = backend_.on_host(queries.first);
    std::vector<std::vector<std::size_t>> chosen;
    std::size_t most = 1;
    for (Index r = 0; r < rows; ++r) {
      const std::size_t begin = static_cast<std::size_t>(table_row(table, r / m, r % m, m)) * width;
      chosen.push_back(
          kept(ids, begin, begin + width, logits.data() + r * tokens, first[static_cast<std::size_t>(r % m)]));
      most = std::max(most, chosen.back().size());
    }
    std::vector<std::int32_t> out(chosen.size() * most, -1), of = out;
    for (std::size_t r = 0; r < chosen.size(); ++r) {
      for (std::size_t k = 0; k < chosen[r].size(); ++k) {
        out[r * most + k] = ids[chosen[r][k]];
        of[r * most + k] = pages[chosen[r][k]];
      }
    }
    return {.per_head = true,
            .per_query = true,
            .ids = backend_.adopt(std::move(out), rows, static_cast<Index>(most)),
            .cluster_ids = backend_.adopt(std::move(of), rows, static_cast<Index>(most))};
  }

  std::unique_ptr<CompressedCache> quest_;
  TwilightParams params_;
  Index budget_;
  float scale_;
  GrowingRows keys_;  ///< [tokens, d] as the codes decode
  std::shared_ptr<Logits> logits_;
};

MakeCache prepare(const HeadPrompt& head, const TwilightParams& params, Backend& backend) {
  const MakeCache quest =
      quest_method().prepare_head(head, Params(std::make_shared<QuestParams>(params.quest), ""), backend);
  const Buffer<const float> keys = rounded(head.keys, backend);
  const auto logits = std::make_shared<Logits>();
  return [=, &backend](Index budget, std::uint32_t seed) {
    return std::make_unique<TwilightCache>(quest(budget, seed), head, keys, logits, params, budget, backend);
  };
}

}  // namespace

MethodInfo twilight_method() {
  return with_params<TwilightParams>(
      {
          .name = "twilight",
          .paper = "Twilight, arXiv 2502.02770, section 4",
          .summary = "quest's tokens, pruned to those that hold a share of the attention by keys in 4 bits",
          .notes = "The released configuration with quest, whose token_budget of 8192 is the budget here: fewer tokens "
                   "answer, as many as hold 0.85 of the estimated attention. It keeps the first two layers dense "
                   "(--dense-layers 2).",
          .complexity = {.compress = {"O(n d)", 1},
                         .query = {"O(n d + B dv), n d for all budgets together", 1},
                         .memory = {"n (d + dv) + 2 d n / page + n (d / 4 + 2)", 1}},
          .kind = Kind::retrieval,
          .granularity = Granularity::query_head,
          .streaming = true,
          .properties = {.full_budget_exact = Property::no("the last 15 % of the attention are dropped at any budget"),
                         .key_shift = Property::no("keys are rounded in steps of their range"),
                         .nested_budgets = Property::no("more tokens share the same attention")},
      },
      prepare);
}

}  // namespace kvbench::methods
