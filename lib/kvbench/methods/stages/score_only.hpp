// SPDX-License-Identifier: Apache-2.0
// Score-only methods: a function gives each token of the context a score, and the tokens with the highest scores are
// kept. Reduction over the query group, pooling, protected tokens, the selection, decoding and the footprint are the
// same for all of them.
#pragma once

#include <utility>

#include <kvbench/methods/contract/info.hpp>
#include <kvbench/methods/stages/group.hpp>

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

/// Keeps, for a budget of B tokens, the last min(recent, B) tokens, then the first `sinks` tokens as far as B allows,
/// and the best of the others, ties to the lower token. A budget of at least n keeps all tokens. Decoded tokens are
/// kept exactly. `scores` [G or 1, c] are those of tokens 0 .. c - 1; the tokens c .. n - 1 are kept as recent ones.
MakeCache keep_best(const HeadPrompt& head, const Buffer<const float>& scores, const SelectionParams& params,
                    Backend& backend);

/// Fills in the fields of a row that all score-only methods have in common.
MethodInfo score_only_row(MethodInfo info);

/// The method that keeps the tokens with the highest score(head, parameters, backend).
template <class P>
MethodInfo score_only(MethodInfo info, Buffer<const float> (*score)(const HeadPrompt&, const P&, Backend&)) {
  info = with_schema<P>(score_only_row(std::move(info)));
  info.prepare = [score](std::span<const HeadPrompt> heads, const Params& params, Backend& backend) {
    const P& own = params.as<P>();
    const auto selection = [&]() -> const SelectionParams& {
      if constexpr (requires { own.selection; })
        return own.selection;
      else
        return own;
    };
    std::vector<MakeCache> caches;
    for (const HeadPrompt& head : heads)
      caches.push_back(keep_best(head, score(head, own, backend), selection(), backend));
    return each_head(std::move(caches));
  };
  return info;
}

}  // namespace kvbench::methods
