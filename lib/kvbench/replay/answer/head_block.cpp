// SPDX-License-Identifier: Apache-2.0
#include <kvbench/replay/answer/head_block.hpp>

namespace kvbench::replay {

HeadBlock::HeadBlock(const Head& head, Index begin, Index count, const std::vector<TokenId>& fixed, Backend& backend)
    : exact(exact_block(head, begin, count, backend)),
      head_(&head),
      local_(localize(exact.block, exact.visible_first, exact.scores, head.map, backend)) {
  methods::AttentionState state = methods::empty_state(backend, exact.block.queries.rows(), head.tokens.values.cols());
  if (!fixed.empty()) {
    const methods::EntryTable table{.ids = backend.adopt(std::vector(fixed), 1, static_cast<Index>(fixed.size()))};
    attend(backend, head.tokens, exact.block, {&table, 1}, state);
  }
  fixed_ = methods::on_host(state, backend);
}

const BlockPart& HeadBlock::part(QueryRun run, Backend& backend) {
  const auto [found, inserted] = parts_.try_emplace(run);
  if (inserted) {
    BlockPart& part = found->second;
    part.global = sub_block(exact.block, head_->group, run.begin, run.size(), backend);
    part.local = head_->map.identity() ? part.global : sub_block(local_, head_->group, run.begin, run.size(), backend);
  }
  return found->second;
}

HostState HeadBlock::fixed(QueryRun run) const {
  return {rows(fixed_.max, run), rows(fixed_.den, run), rows(fixed_.num, run)};
}

HostState HeadBlock::whole(QueryRun run) const {
  HostState state{rows(exact.log_sum_exp, run), {}, rows(exact.out, run)};
  state.den.assign(state.max.size(), 1);
  return state;
}

std::vector<float> HeadBlock::rows(const std::vector<float>& all, QueryRun run) const {
  return query_rows(all, head_->group, exact.block.size(), run.begin, run.size());
}

}  // namespace kvbench::replay
