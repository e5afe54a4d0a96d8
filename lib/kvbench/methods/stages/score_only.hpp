// SPDX-License-Identifier: Apache-2.0
// Score-only methods: a function gives each token of the context a score, and the tokens with the highest scores are
// kept. Reduction over the query group, pooling, protected tokens, the selection, decoding and the footprint are the
// same for all of them.
#pragma once

#include <utility>

#include <kvbench/methods/contract/info.hpp>
#include <kvbench/methods/stages/parameters.hpp>

namespace kvbench::methods {

/// How tokens are selected by their scores. A method may use this as its parameters, or hold it as a member `selection`
/// of them.
struct SelectionParams {
  enum class Order { reduce_first, pool_first };
  Index sinks = 0;   ///< first tokens of the context, always kept
  Index recent = 0;  ///< last tokens of the context, always kept, in preference to sinks
  GroupChoice group;
  kernels::Pooling pooling = kernels::Pooling::none;  ///< along the context
  Index kernel = 1;                                   ///< width of the pooling in tokens, odd
  Order order = Order::reduce_first;  ///< of reduction and pooling, per=kv_head only: the two do not commute
};
void fields(ParamVisitor& visitor, SelectionParams& params);
/// The parameters of methods with one score for a kv head: the tokens that are always kept.
struct KvHeadSelection : SelectionParams {};
void fields(ParamVisitor& visitor, KvHeadSelection& params);
/// Throws Error, naming the method, for an even kernel.
void check_selection(std::string_view method, const SelectionParams& params);

/// The scores [G or 1, c] of the tokens 0 .. c - 1 as the selection ranks them: reduced over the query group and
/// pooled. The tokens c .. n - 1 are kept as recent ones.
TokenScores token_scores(const HeadPrompt& head, const Buffer<const float>& scores, const SelectionParams& params,
                         Backend& backend);

/// How many of `kept` tokens are the first and the last ones, which these scores protect. The others are the best.
Protected protected_within(const TokenScores& scores, Index kept);

/// The cache of the tokens that a budget of B tokens keeps by these scores (TokenScores); 0 and all are possible.
/// Decoded tokens are kept exactly. `ragged` as in KeptTokens.
std::unique_ptr<CompressedCache> keep_best(const HeadPrompt& head, const TokenScores& scores, Index budget,
                                           Backend& backend, bool ragged = false);

/// The method that states these scores and keeps the best tokens of each head.
MethodInfo with_scores(MethodInfo info, decltype(MethodInfo::scores) scores);

/// Fills in the fields of a row that all score-only methods have in common.
MethodInfo score_only_row(MethodInfo info);

/// The method that keeps the tokens with the highest score(head, parameters, backend).
template <class P>
MethodInfo score_only(MethodInfo info, Buffer<const float> (*score)(const HeadPrompt&, const P&, Backend&)) {
  const auto scores = [score](std::span<const HeadPrompt> heads, const Params& params, Backend& backend) {
    const P& own = params.as<P>();
    const auto selection = [&]() -> const SelectionParams& {
      if constexpr (requires { own.selection; })
        return own.selection;
      else
        return own;
    };
    std::vector<TokenScores> all;
    for (const HeadPrompt& head : heads)
      all.push_back(token_scores(head, score(head, own, backend), selection(), backend));
    return all;
  };
  return with_scores(with_schema<P>(score_only_row(std::move(info))), scores);
}

}  // namespace kvbench::methods
