// SPDX-License-Identifier: Apache-2.0
#include <kvbench/methods/eviction/sink.hpp>

#include <algorithm>

#include <kvbench/methods/stages/kept_cache.hpp>
#include <kvbench/methods/stages/rows.hpp>

namespace kvbench::methods {
namespace {

class SinkCache : public HeadCache {
 public:
  /// `rope` is absent where positions do not change.
  SinkCache(const HeadPrompt& head, Index budget, Index sinks, std::optional<Rope> rope, Backend& backend)
      : HeadCache(head, backend), rope_(rope), sinks_(std::min(sinks, budget - 1)), recent_(budget - sinks_) {
    sink_keys_ = backend.allocate<float>(sinks_, head.keys.cols());
    take(head.keys);
  }

  Index takes(const TokenBlock& tokens) override { return tokens.size(); }
  void append(const TokenBlock& tokens) override { take(tokens.keys); }

  EntryTables entries(const QueryBlock& queries) const override {
    std::vector<Index> ends;  // per query: tokens of the stream when it is answered
    for (const std::int32_t position : queries.positions) ends.push_back(std::min<Index>(position + 1, tokens_));
    if (ends.empty()) return {};
    // Causal masking lets all queries with the same number of evicted tokens share one row.
    const bool per_query = evicted(ends.front()) != evicted(ends.back());
    if (!per_query) ends = {ends.back()};

    EntryTables tables;
    if (sinks_ > 0) tables.push_back(sink_table(ends, per_query));
    tables.push_back(window_table(ends, per_query));
    return tables;
  }

  Footprint footprint() const override {
    return kept_footprint(std::min(tokens_, sinks_ + recent_), sink_keys_.cols(), dv_);
  }
  /// The window is the selection of this method; only the sinks are always kept.
  Protected protected_tokens() const override { return {.sinks = sinks_}; }

 private:
  Index evicted(Index end) const { return std::max<Index>(0, end - sinks_ - recent_); }

  /// Counts new tokens and copies the keys of those among them that are sinks.
  void take(const Buffer<const float>& keys) {
    const Index count = std::clamp<Index>(sinks_ - tokens_, 0, keys.rows());
    if (count > 0) copy_rows(keys.slice(0, count), sink_keys_.slice(tokens_, count), backend_);
    tokens_ += keys.rows();
  }

  EntryTable sink_table(const std::vector<Index>& ends, bool per_query) const {
    std::vector<TokenId> row = token_range(0, sinks_);
    for (TokenId& id : row) id = id < tokens_ ? id : -1;
    if (!rope_ || evicted(ends.back()) == 0) return {.ids = backend_.adopt(std::move(row), 1, sinks_)};

    const Index rows = static_cast<Index>(ends.size());
    std::vector<TokenId> ids;
    std::vector<std::int64_t> turns;
    for (const Index end : ends) {
      ids.insert(ids.end(), row.begin(), row.end());
      turns.insert(turns.end(), row.size(), evicted(end));
    }
    const auto copies = gathered(sink_keys_, ids, backend_);
    const auto turned = backend_.allocate<float>(rows * sinks_, sink_keys_.cols());
    backend_.run(kernels::RotateRows<Buffer>{.rows = copies,
                                             .offsets = backend_.adopt(std::move(turns), rows * sinks_),
                                             .theta = rope_->theta,
                                             .rotary_dims = sink_keys_.cols(),
                                             .interleaved = rope_->interleaved,
                                             .out = turned});
    return {.per_query = per_query, .ids = backend_.adopt(std::move(ids), rows, sinks_), .own_keys = turned};
  }

  EntryTable window_table(const std::vector<Index>& ends, bool per_query) const {
    const Index rows = static_cast<Index>(ends.size());
    const Index width = std::clamp<Index>(ends.back() - sinks_, 0, recent_);
    std::vector<TokenId> ids;
    for (const Index end : ends) {
      const Index begin = std::max(sinks_, end - recent_);
      for (Index i = begin; i < begin + width; ++i) ids.push_back(i < end ? static_cast<TokenId>(i) : -1);
    }
    return {.per_query = per_query, .ids = backend_.adopt(std::move(ids), rows, width)};
  }

  std::optional<Rope> rope_;
  Index sinks_, recent_;
  Index tokens_ = 0;         ///< of the stream so far
  Buffer<float> sink_keys_;  ///< [sinks, d], rows in use: those of the stream so far
};

MakeCache prepare(const HeadPrompt& head, const SinkParams& params, Backend& backend) {
  const bool possible = head.rope && head.keys.cols() % 2 == 0;
  if (params.reposition == SinkParams::Reposition::yes && !possible) {
    throw Unavailable(
        "sink.reposition=true rotates keys by the model's RoPE, and there is no unscaled RoPE over an even head "
        "dimension; use sink.reposition=auto or false");
  }
  const bool turn = possible && params.reposition != SinkParams::Reposition::no;
  return [head, sinks = params.sinks, rope = turn ? head.rope : std::nullopt, &backend](Index budget, std::uint32_t) {
    return std::make_unique<SinkCache>(head, budget, sinks, rope, backend);
  };
}

}  // namespace

void fields(ParamVisitor& visitor, SinkParams& params) {
  visitor.integer("sinks", params.sinks, {.min = 0},
                  "first tokens to keep; at least one token of the budget remains for recent ones");
  visitor.choice("reposition", params.reposition, {"auto", "true", "false"},
                 "count positions inside the cache; auto: where the trace has an unscaled RoPE");
}

std::unique_ptr<CompressedCache> sliding_window(const HeadPrompt& head, Index budget, Index sinks, Backend& backend) {
  return std::make_unique<SinkCache>(head, budget, sinks, std::nullopt, backend);
}

MethodInfo sink_method() {
  return with_params<SinkParams>(
      {
          .name = "sink",
          .aliases = {"streamingllm"},
          .paper = "StreamingLLM, arXiv 2309.17453, section 3.2",
          .summary = "the first tokens and a sliding window of the most recent ones",
          .notes = "Positions inside the cache as in paper and released code where the trace has an unscaled RoPE "
                   "(reposition=auto); comparisons that keep the positions use reposition=false. The released code "
                   "rotates all cached keys at each step; here the sinks are rotated by the number of evicted tokens, "
                   "which gives the same logits.",
          .complexity = {.compress = {"O(1)"}},
          .kind = Kind::eviction,
          .streaming = true,
          .properties = {.key_shift =
                             Property::no("sinks are rotated, and a shift of their keys would be rotated with them")},
      },
      prepare);
}

}  // namespace kvbench::methods
