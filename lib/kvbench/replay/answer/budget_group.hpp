// SPDX-License-Identifier: Apache-2.0
// The cells of one method and seed on one unit: they differ in their budget and answer each block of queries together, so that
// what their entries have in common is attended to once.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include <kvbench/replay/answer/cell.hpp>

namespace kvbench {

class BudgetGroup {
 public:
  /// Runs `work` for a cell; false where it failed and the cell is over.
  using Guard = std::function<bool(std::size_t cell, const std::function<void()>& work)>;

  /// Cells are answered in falling order of their budget.
  void add(std::size_t cell, Index budget, std::unique_ptr<CellRun> run);

  /// Calls visit(cell) for each cell that has not failed.
  template <class F>
  void each_cell(F visit) const {
    for (const Member& member : members_) visit(member.cell);
  }

  /// Answers the queries of a block (one SharedBlock a head), appending the decoded tokens up to each.
  void answer(std::span<SharedBlock> blocks, const Guard& guard, Backend& backend);

  /// After the last block.
  void finish(const Guard& guard);

 private:
  struct Member {
    std::size_t cell;
    Index budget;
    std::unique_ptr<CellRun> run;
    bool failed = false;
  };

  template <class F>
  void attempt(Member& member, const Guard& guard, F work) {
    if (!member.failed) member.failed = !guard(member.cell, work);
  }
  void answer_run(std::span<SharedBlock> blocks, QueryRun run, std::span<Member*> members, const Guard& guard,
                  Backend& backend);

  std::vector<Member> members_;
};

}  // namespace kvbench
