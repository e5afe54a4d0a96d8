// SPDX-License-Identifier: Apache-2.0
#include <kvbench/methods/merging/cam.hpp>

#include <cmath>
#include <map>

#include <kvbench/methods/merging/cam_rule.hpp>
#include <kvbench/methods/stages/draws.hpp>
#include <kvbench/methods/stages/per_block.hpp>
#include <kvbench/methods/stages/prompt_steps.hpp>
#include <kvbench/methods/stages/rows.hpp>

namespace kvbench::methods {
namespace {

/// Unchanged first tokens, and a window into whose values the values that leave it are merged.
class CamCache : public HeadCache {
 public:
  CamCache(const HeadPrompt& head, const CamRule& rule, const CamPrompt& prompt, const Draws& draws,
           std::vector<Note> notes, Backend& backend);

  void append(const TokenBlock& tokens) override;
  EntryTables entries(const QueryBlock& queries) const override;
  void observe(const QueryBlock& queries, const EntryTables& entries,
               std::span<const Buffer<const float>> weights) override;
  Footprint footprint() const override;
  Protected protected_tokens() const override { return {.sinks = rule_.start}; }
  std::vector<Note> notes() const override { return notes_; }

 private:
  Index sinks() const { return std::min(rule_.start, tokens_); }
  Index window() const { return std::max<Index>(0, tokens_ - begin_); }
  /// Stored values of a row, of the tokens base_ .. tokens_ - 1.
  Buffer<float> stored(Index row) const { return values_.slice(row * capacity_, std::max<Index>(0, tokens_ - base_)); }

  /// Stores the values of a row's window after all merges of the prompt.
  void take_prompt(const HeadPrompt& head, const CamPrompt& prompt, Index row);
  void make_room();
  void slide() { begin_ = std::max(begin_, tokens_ - rule_.recent); }
  /// For every row: draws whether the value of token i is merged, and if so merges it.
  void merge(Index i);
  bool drawn(Index row, Index i, double chance) const {
    return draws_.uniform(i, static_cast<std::uint32_t>(row)) < chance;
  }
  float share() const { return 1 / static_cast<float>(rule_.divisor); }

  CamRule rule_;
  Draws draws_;
  std::vector<Note> notes_;
  Index rows_;
  Gathered attention_;  ///< sums so far; form=decode: attention of the last step
  Index tokens_;        ///< of the stream so far
  Index begin_;         ///< first token of the window
  Index base_;          ///< token of each row's first stored value
  Index capacity_;      ///< stored values per row
  Buffer<float> values_;
  Index slots_;  ///< tokens of the window when the last query was answered
};

CamCache::CamCache(const HeadPrompt& head, const CamRule& rule, const CamPrompt& prompt, const Draws& draws,
                   std::vector<Note> notes, Backend& backend)
    : HeadCache(head, backend),
      rule_(rule),
      draws_(draws),
      notes_(std::move(notes)),
      rows_(rule.rows(head.group)),
      attention_(prompt.gathered),
      tokens_(head.tokens()),
      begin_(std::max(rule.start, tokens_ - rule.recent)),
      base_(begin_),
      capacity_(2 * rule.recent + 64),
      values_(backend.allocate<float>(rows_ * capacity_, dv_)),
      slots_(window()) {
  for (Index row = 0; row < rows_ && window() > 0; ++row) take_prompt(head, prompt, row);
}

void CamCache::take_prompt(const HeadPrompt& head, const CamPrompt& prompt, Index row) {
  std::vector<std::int32_t> merged;
  if (!prompt.chances.empty()) {
    const std::vector<double>& chances = prompt.chances[static_cast<std::size_t>(row)];
    for (std::size_t k = 0; k < chances.size(); ++k) {
      const Index i = rule_.start + static_cast<Index>(k);
      if (drawn(row, i, chances[k])) merged.push_back(static_cast<std::int32_t>(i));
    }
  }
  Buffer<const float> values = head.values;
  if (!merged.empty()) {
    const auto changed = backend_.allocate<float>(tokens_, dv_);
    copy_rows(head.values, changed, backend_);
    const Index count = std::ssize(merged);
    backend_.run(kernels::SpreadRows<Buffer>{.sources = backend_.adopt(std::move(merged), count),
                                             .count = rule_.receivers(),
                                             .factor = share(),
                                             .rows = changed});
    values = changed;
  }
  copy_rows(values.slice(begin_, window()), stored(row), backend_);
}

void CamCache::make_room() {
  if (tokens_ - base_ < capacity_) return;
  const auto fresh = backend_.allocate<float>(rows_ * capacity_, dv_);
  for (Index row = 0; row < rows_; ++row) {
    copy_rows(stored(row).slice(begin_ - base_, window()), fresh.slice(row * capacity_, window()), backend_);
  }
  values_ = fresh;
  base_ = begin_;
}

void CamCache::append(const TokenBlock& tokens) {
  slide();  // in case observe() was not called for the last token
  const Index token = tokens_;
  if (token >= rule_.start) make_room();
  ++tokens_;
  for (Index row = 0; row < rows_ && token >= rule_.start; ++row) {
    copy_rows(tokens.values, stored(row).slice(token - base_, 1), backend_);
  }
  for (auto& of_head : attention_) of_head.push_back(0);
  if (rule_.form == CamForm::eval) merge(rule_.merged_at(token));
  if (rule_.form == CamForm::decode) slide();
  slots_ = window();
}

EntryTables CamCache::entries(const QueryBlock&) const {
  EntryTables tables;
  if (sinks() > 0) tables.push_back({.ids = backend_.adopt(token_range(0, sinks()), 1, sinks())});
  if (window() == 0) return tables;
  const auto values = backend_.allocate<float>(rows_ * window(), dv_);
  std::vector<TokenId> ids;
  for (Index row = 0; row < rows_; ++row) {
    const std::vector<TokenId> of_row = token_range(begin_, window());
    ids.insert(ids.end(), of_row.begin(), of_row.end());
    copy_rows(stored(row).slice(begin_ - base_, window()), values.slice(row * window(), window()), backend_);
  }
  tables.push_back({.per_head = rule_.group.per_head(),
                    .ids = backend_.adopt(std::move(ids), rows_, window()),
                    .own_values = values});
  return tables;
}

void CamCache::observe(const QueryBlock&, const EntryTables&, std::span<const Buffer<const float>> weights) {
  std::size_t table = 0;
  for (const auto& [first, count] : {std::pair(Index{0}, sinks()), std::pair(begin_, window())}) {
    if (count == 0) continue;
    const std::vector<float> shares = backend_.read(weights[table++]);
    for (std::size_t g = 0; g < attention_.size(); ++g) {
      for (Index k = 0; k < count; ++k) {
        double& sum = attention_[g][static_cast<std::size_t>(first + k)];
        const double share = shares[g * static_cast<std::size_t>(count) + static_cast<std::size_t>(k)];
        sum = rule_.form == CamForm::decode ? share : sum + share;
      }
    }
  }
  if (rule_.form != CamForm::eval) merge(rule_.merged_at(tokens_ - 1));
  slide();
}

void CamCache::merge(Index i) {
  if (i < rule_.start || rule_.receivers() < 1) return;
  for (Index row = 0; row < rows_; ++row) {
    if (!drawn(row, i, merge_chance(rule_, attention_, row, i))) continue;
    backend_.run(kernels::SpreadRows<Buffer>{
        .sources = backend_.adopt(std::vector<std::int32_t>{static_cast<std::int32_t>(i - base_)}, 1),
        .count = rule_.receivers(),
        .factor = share(),
        .rows = stored(row),
    });
  }
}

Footprint CamCache::footprint() const {
  Footprint arrays = {
      {.name = "keys", .rows = sinks() + slots_, .cols = d_},
      {.name = "first values", .rows = sinks(), .cols = dv_, .content = Content::values},
      {.name = "window values", .rows = rows_ * slots_, .cols = dv_, .content = Content::values},
  };
  if (rule_.form == CamForm::decode) return arrays;
  // Sums and means can be stored reduced over the query group; a maximum of sums cannot.
  const bool by_head = rule_.group.per_head() || rule_.group.reduce == kernels::Reduction::max;
  const Index counted = slots_ + (rule_.form == CamForm::eval ? sinks() : 0);
  arrays.push_back({.name = "attention sums",
                    .element = Element::f32,
                    .rows = counted * (by_head ? std::ssize(attention_) : 1),
                    .cols = 1,
                    .read = Read::never,
                    .content = Content::meta});
  return arrays;
}

using Prompt = CamParams::Prompt;

constexpr Index streaming_merge = 16, decode_merge = 32;  // m of the released code

/// Whether column sums replace a replay of the prompt. Throws Unavailable where the trace allows neither.
bool uses_columns(const ContextData& data, const CamParams& params) {
  if (data.tokens == 0 || params.form == CamForm::decode) return false;
  if (params.prompt != Prompt::columns && has_all_queries(data)) return false;
  if (params.prompt != Prompt::stream && data.column_sums) return true;
  const char* lacks = params.prompt == Prompt::columns
                          ? "the column sums up to the end of the context (cam.prompt=columns)"
                      : params.prompt == Prompt::stream ? "the query of every token of the context (cam.prompt=stream)"
                                                        : "the query of every token of the context, or its column sums";
  throw Unavailable(fmt::format(
      "cam.form={} merges the prompt's values by the attention that they have received and needs {}, and "
      "{} queries and {} column sums; choose cam.form=decode, which merges decoded tokens only, or replay a "
      "trace that has them (--queries all, or --column-sums)",
      params.form == CamForm::eval ? "eval" : "streaming", lacks, observed_share(data),
      data.column_sums ? "the" : "no"));
}

MakeCache prepare(const HeadPrompt& head, const CamParams& params, Backend& backend) {
  const bool columns = uses_columns(head.data(), params);
  const auto prompts = std::make_shared<std::map<Index, CamPrompt>>();  // by budget, shared by seeds
  return [head, params, columns, prompts, &backend](Index budget, std::uint32_t seed) {
    const CamRule rule = cam_rule(params, budget);
    const CamPrompt& prompt = computed_once(*prompts, budget, [&] { return cam_prompt(head, rule, columns, backend); });
    std::vector<Note> notes;
    if (columns && params.prompt == Prompt::when_possible)
      notes.push_back({"prompt=columns (the trace lacks queries)"});
    return std::make_unique<CamCache>(head, rule, prompt, Draws(seed, "cam", head), std::move(notes), backend);
  };
}

}  // namespace

void fields(ParamVisitor& visitor, CamParams& params) {
  visitor.choice("form", params.form, {"streaming", "eval", "decode"}, "released form");
  visitor.integer("start", params.start, {.min = 0},
                  "first tokens to keep; at least one token of the budget remains for recent ones");
  visitor.real("start_share", params.start_share, {.min = 0, .max = 1},
               "the same as a share of the budget; 0: not given");
  visitor.integer(
      "merge", params.merge, {.min = 0},
      "m: values that receive a share of a merged value; 0: 16 (streaming), the window (eval), 32 (decode)");
  visitor.choice("prompt", params.prompt, {"auto", "stream", "columns"},
                 "attention of the prompt: replayed from its queries, or column sums; auto: replayed where the trace "
                 "has all queries");
  fields(visitor, params.group);
}

CamRule cam_rule(const CamParams& params, Index budget) {
  CamRule rule{.form = params.form, .group = params.group, .start = params.start};
  if (params.start_share > 0) {
    // 1e-9: a product such as 0.28 * 25 must not round because of its rounding error.
    const double share = params.start_share * static_cast<double>(budget);
    rule.start = static_cast<Index>(params.form == CamForm::eval ? std::ceil(share - 1e-9) : std::floor(share + 1e-9));
  }
  rule.start = std::min(rule.start, budget - 1);
  rule.recent = budget - rule.start;
  rule.divisor = params.merge > 0                    ? params.merge
                 : params.form == CamForm::eval      ? rule.recent
                 : params.form == CamForm::streaming ? streaming_merge
                                                     : decode_merge;
  return rule;
}

MethodInfo cam_method() {
  return with_params<CamParams>(
      {
          .name = "cam",
          .paper = "CaM, ICML 2024, and its released code",
          .summary = "first tokens and a window; values that leave it are merged at random into the values after them",
          .notes =
              "The released code has three forms (form), which differ in the attention that they sum, the normaliser, "
              "m, and the time of a merge. Two of them also merge in the prompt and need its attention: every query of "
              "the context, or its column sums. Positions are those of the trace: compare with sink.reposition=false.",
          .complexity = {.compress = {"O(G n (R + m dv)); prompt=stream O(G n^2 d)", 1},
                         .memory = {"B (d + G dv) + G B (attention)"}},
          .kind = Kind::merging,
          .granularity = Granularity::query_head,
          .check_data = [](const ContextData& data,
                           const Params& params) { uses_columns(data, params.as<CamParams>()); },
          .streaming = true,
          .seeded = true,
          .observes = true,
          .own_values = true,
          .properties = {.head_permutation = Property::no("draws are keyed by the head"),
                         .nested_budgets = Property::no("tokens are nested, but the values merged into them are not")},
      },
      prepare);
}

}  // namespace kvbench::methods
