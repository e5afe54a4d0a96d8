// SPDX-License-Identifier: Apache-2.0
// The configurations of one method and seed on one work item, which differ in their budget. They answer each block of
// queries together, so that attention over the tokens that their entries have in common is computed once.
#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include <kvbench/replay/answer/configuration_run.hpp>

namespace kvbench::replay {

/// The answer of each set to a run of queries of one head, with `fixed` included. The time is divided among the sets in
/// proportion to their numbers of entries. Empty where computing them together would not save work.
std::vector<ConfigurationRun::Shared> attend_together(std::span<const HostEntries* const> sets, const BlockPart& part,
                                                      const HostState& fixed, const methods::HeadTokens& tokens,
                                                      Backend& backend);

class Together {
 public:
  /// Runs `work` for a configuration (its index in the plan); returns false where this ends the configuration.
  using Attempt = std::function<bool(std::size_t configuration, const std::function<void()>& work)>;

  explicit Together(Attempt attempt) : attempt_(std::move(attempt)) {}

  void add(std::size_t configuration, std::unique_ptr<ConfigurationRun> run) {
    members_.push_back({configuration, std::move(run)});
  }

  /// Calls visit(configuration) for each one that has not ended.
  template <class F>
  void each(F visit) const {
    for (const Member& member : members_) visit(member.configuration);
  }

  /// Answers the queries of a block (one HeadBlock per head), after appending the decoded tokens up to each query.
  void answer(std::span<HeadBlock> blocks, Backend& backend);

  /// Finishes the runs, after the last block.
  void finish();

 private:
  struct Member {
    std::size_t configuration;
    std::unique_ptr<ConfigurationRun> run;
    bool ended = false;
  };

  template <class F>
  void attempt(Member& member, F work) {
    if (!member.ended) member.ended = !attempt_(member.configuration, work);
  }
  void answer_run(std::span<HeadBlock> blocks, QueryRun run, std::span<Member*> members, Backend& backend);

  Attempt attempt_;
  std::vector<Member> members_;
};

}  // namespace kvbench::replay
