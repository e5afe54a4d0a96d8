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
// Complexity: that of quest with B tokens, and O(B d) per query and query head for their estimated logits. Each query
// reads rows of its own: with n = 32768, d = 128 and B = n / 4 a block of 256 queries costs 6.6 exact passes.
// Memory: that of quest, and d / 2 + 4 bytes a token for the keys in 4 bits, of which B tokens are read per query head.
// Deviations: the released code leaves the first two layers whole (--dense-layers 2). Scale and minimum are stored in
// 16 bits. The released selection rounds a budget up to whole pages, quest down.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include <kvbench/methods/contract/attend.hpp>
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

/// The places of the largest numbers, ties to the lower place, until they sum to `share` of all.
std::vector<std::size_t> largest_until(const std::vector<double>& numbers, double share) {
  std::vector<std::size_t> places(numbers.size());
  std::iota(places.begin(), places.end(), std::size_t{0});
  const auto before = [&](std::size_t a, std::size_t b) {
    return numbers[a] != numbers[b] ? numbers[a] > numbers[b] : a < b;
  };
  double left = share * std::accumulate(numbers.begin(), numbers.end(), 0.0);
  auto first = places.begin(), last = places.end();  // the last place that is needed is one of these
  while (last - first > 1) {
    const auto middle = first + (last - first) / 2;
    std::nth_element(first, middle, last, before);
    double sum = 0;
    for (auto place = first; place != middle; ++place) sum += numbers[*place];
    if (sum >= left) {
      last = middle;
    } else {
      left -= sum;
      first = middle;
    }
  }
  places.erase(last, places.end());
  std::ranges::sort(places);
  return places;
}

class TwilightCache : public HeadCache {
 public:
  TwilightCache(std::unique_ptr<CompressedCache> quest, const HeadPrompt& head, Buffer<const float> keys,
                const TwilightParams& params, Index budget, Backend& backend)
      : HeadCache(head, backend),
        quest_(std::move(quest)),
        params_(params),
        budget_(budget),
        scale_(head.scale),
        keys_(backend, std::move(keys)) {}

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
  EntryTable pruned(const QueryBlock& queries, const EntryTable& table) const {
    QueryBlock estimated = queries;
    estimated.scores = {};
    const Index rows = queries.queries.rows(), m = queries.size(), tokens = keys_.rows().rows();
    auto none = backend_.allocate<float>(tokens, 1);
    backend_.fill(none, 0.0f);
    AttentionState state = empty_state(backend_, rows, 1);
    std::vector<Buffer<float>> logits;
    attend(backend_, {.keys = keys_.rows(), .values = none, .scale = scale_, .group = group_}, estimated, {&table, 1},
           state, &logits);
    const std::vector<float> host = backend_.read(logits.front()), max = backend_.read(state.max);
    const std::vector<std::int32_t> ids = backend_.read(table.ids), pages = backend_.read(table.cluster_ids);
    const auto width = static_cast<std::size_t>(table.ids.cols());
    std::vector<std::vector<std::size_t>> kept;  // slots of the table
    std::size_t most = 1;
    for (Index r = 0; r < rows; ++r) {
      const std::size_t of_row = static_cast<std::size_t>(r) * width;
      const std::size_t of_table = static_cast<std::size_t>(table_row(table, r / m, r % m, m)) * width;
      std::vector<double> weights;
      std::vector<std::size_t> slots;
      for (std::size_t s = 0; s < width; ++s) {
        if (std::isinf(host[of_row + s])) continue;  // not visible, or unused
        weights.push_back(std::exp(static_cast<double>(host[of_row + s] - max[static_cast<std::size_t>(r)])));
        slots.push_back(of_table + s);
      }
      kept.emplace_back();
      for (const std::size_t place : largest_until(weights, params_.p)) kept.back().push_back(slots[place]);
      most = std::max(most, kept.back().size());
    }
    std::vector<std::int32_t> out(kept.size() * most, -1), of = out;
    for (std::size_t r = 0; r < kept.size(); ++r) {
      for (std::size_t k = 0; k < kept[r].size(); ++k) {
        out[r * most + k] = ids[kept[r][k]];
        of[r * most + k] = pages[kept[r][k]];
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
};

MakeCache prepare(const HeadPrompt& head, const TwilightParams& params, Backend& backend) {
  const MakeCache quest =
      quest_method().prepare_head(head, Params(std::make_shared<QuestParams>(params.quest), ""), backend);
  const Buffer<const float> keys = rounded(head.keys, backend);
  return [=, &backend](Index budget, std::uint32_t seed) {
    return std::make_unique<TwilightCache>(quest(budget, seed), head, keys, params, budget, backend);
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
                         .query = {"O(2 d n / page + B (d + dv))", 1},
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
