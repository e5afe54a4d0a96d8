// SPDX-License-Identifier: Apache-2.0
#include <kvbench/replay/answer/budget_group.hpp>

#include <algorithm>
#include <map>

#include <kvbench/core/stopwatch.hpp>

namespace kvbench {
namespace {

/// Fewer query rows do not earn back the sorting of entries into segments.
constexpr Index min_shared_rows = 8;

/// The members' answers of one head, computed together; empty where sharing would not save work.
std::vector<CellRun::Shared> attend_together(std::span<const HostEntries* const> sets, const BlockPart& part,
                                             const HostState& fixed, const HeadTokens& tokens, Backend& backend) {
  const Stopwatch watch(backend);
  auto shared = SharedEntries::of(sets, tokens.keys.rows());
  if (!shared) return {};
  std::vector<CellRun::Shared> out;
  for (SetAnswer& answer : std::move(*shared).attend(tokens, part.global, fixed, backend)) out.push_back({std::move(answer)});
  const double seconds = watch.seconds();
  double slots = 0;
  for (const double s : shared->slots()) slots += s;
  for (std::size_t m = 0; m < out.size(); ++m) out[m].seconds = seconds * shared->slots()[m] / slots;
  return out;
}

}  // namespace

void BudgetGroup::add(std::size_t cell, Index budget, std::unique_ptr<CellRun> run) {
  const auto place = std::ranges::find_if(members_, [&](const Member& m) { return m.budget < budget; });
  members_.insert(place, {cell, budget, std::move(run)});
}

void BudgetGroup::answer(std::span<SharedBlock> blocks, const Guard& guard, Backend& backend) {
  for (Member& member : members_) member.run->start(blocks);
  for (bool more = true; more;) {
    std::map<QueryRun, std::vector<Member*>> by_run;
    for (Member& member : members_) {
      attempt(member, guard, [&] {
        const QueryRun run = member.run->advance(blocks, backend);
        if (run.size() > 0) by_run[run].push_back(&member);
      });
    }
    for (auto& [run, members] : by_run) answer_run(blocks, run, members, guard, backend);
    more = !by_run.empty();
  }
  std::erase_if(members_, [](const Member& member) { return member.failed; });
}

void BudgetGroup::answer_run(std::span<SharedBlock> blocks, QueryRun run, std::span<Member*> members, const Guard& guard,
                             Backend& backend) {
  std::vector<std::shared_ptr<BlockMemo>> memos;
  const bool together = members.size() > 1 && members.front()->run->shares();
  for (std::size_t h = 0; h < blocks.size() && together; ++h) {
    std::vector<Index> budgets;
    for (const Member* member : members) budgets.push_back(member->budget);
    if (run.size() * blocks[h].head().group < min_shared_rows) budgets.clear();
    memos.push_back(std::make_shared<BlockMemo>(std::move(budgets)));
  }
  for (Member* member : members) {
    attempt(*member, guard, [&] { member->run->collect(blocks, run, memos, backend); });
  }
  for (std::size_t h = 0; h < blocks.size(); ++h) {
    std::vector<const HostEntries*> sets;
    for (const Member* member : members) {
      if (!member->failed && !member->run->complete(h)) sets.push_back(&member->run->entries(h));
    }
    std::vector<CellRun::Shared> shared;
    if (together && sets.size() > 1 && run.size() * blocks[h].head().group >= min_shared_rows) {
      shared = attend_together(sets, blocks[h].part(run, backend), blocks[h].fixed(run), blocks[h].head().tokens, backend);
    }
    std::size_t next = 0;
    for (Member* member : members) {
      if (member->failed) continue;
      const CellRun::Shared* own = shared.empty() || member->run->complete(h) ? nullptr : &shared[next++];
      attempt(*member, guard, [&] { member->run->answer(blocks[h], run, h, own, backend); });
    }
  }
  for (Member* member : members) attempt(*member, guard, [&] { member->run->observe(); });
}

void BudgetGroup::finish(const Guard& guard) {
  for (Member& member : members_) attempt(member, guard, [&] { member.run->finish(); });
}

}  // namespace kvbench
