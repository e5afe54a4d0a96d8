// SPDX-License-Identifier: Apache-2.0
// The vote of the last prompt queries for the tokens before them, as SnapKV (arXiv 2404.14469) counts it: shared by the methods
// that differ only in how they hand out the budget.
#pragma once

#include <string_view>

#include <kvbench/methods/stages/group.hpp>
#include <kvbench/methods/contract/method.hpp>

namespace kvbench {

/// Explained in snapkv.hpp.
struct WindowVoteParams {
  enum class Order { reduce_first, pool_first };
  Index window = 32;
  Index kernel = 7;
  kernels::Pooling pooling = kernels::Pooling::max;
  GroupChoice group;
  Order order = Order::reduce_first;
};
void fields(ParamVisitor& visitor, WindowVoteParams& params);
/// Throws Error for an even kernel, naming the method.
void check_votes(std::string_view method, const WindowVoteParams& params);

/// Keeps the winners of the vote and the window's own tokens; a budget of at most the window keeps the last tokens, one of the
/// whole context everything. Throws Unavailable, naming the method, where the trace lacks queries of the window.
std::shared_ptr<const Prepared> window_votes(const HeadPrompt& head, std::string_view method, const WindowVoteParams& params,
                                             Backend& backend);

}  // namespace kvbench
