// SPDX-License-Identifier: Apache-2.0
// A configuration (method, parameters, budget, seed) on the heads of a work item, from its cache to the last query, and
// those of one method and seed together.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <kvbench/replay/answer/head_block.hpp>
#include <kvbench/session/session.hpp>

namespace kvbench::replay {

/// Runs one cache over the blocks of queries in order and measures it. For each block: start(); then, while advance()
/// returns queries: collect(), answer() for each head, observe().
class ConfigurationRun {
 public:
  struct Options {
    bool decode = false;  ///< tokens after the context are appended to the cache; otherwise the harness holds them
    bool observes = false;
    bool recall_sinks = false;
    /// nothing is shared: logits are computed again, and their time counts for methods that select by them
    bool standalone = false;
    bool selects = false;  ///< the method selects per query
    /// by head, of the method `exact`: its metrics are those of the noise floor, and its entries, which are all tokens,
    /// are answered like others, not by the exact pass; empty: any other method
    std::span<NoiseFloor> noise_floors = {};
    std::span<ContextMass> context_mass = {};  ///< by head; empty: mass_ceiling is not measured
    bool keep_raw = false, keep_exact = false;
    Index held_of = 0;  ///< ConfigurationResult::held is of so many first tokens; 0: it is not wanted
    methods::Element kv_element = methods::Element::f16;
    std::vector<methods::Note> notes;  ///< of the harness, in front of those of the method
  };
  /// An answer that was computed together with other configurations, and this configuration's share of the time.
  struct Shared {
    Answer answer;
    double seconds = 0;
  };

  /// `caches` and `results` are those of the heads of the work item, in the order of `heads`; heads and results must
  /// outlive this object.
  ConfigurationRun(methods::Caches caches, Options options, std::span<const Head> heads,
                   std::vector<ConfigurationResult*> results, Backend& backend);

  /// Whether attention over its entries may be computed together with that of another configuration.
  bool shares() const { return !options_.standalone && !options_.observes; }

  void start(std::span<HeadBlock> blocks);
  /// Appends decoded tokens and returns the next queries of the block, which has these positions, that the cache
  /// answers; empty after the last of them.
  QueryRun advance(std::span<const std::int32_t> positions, Backend& backend);
  /// Gets from the cache the entries that answer the run, and checks them.
  void collect(std::span<HeadBlock> blocks, QueryRun run, Backend& backend);
  /// The entries of one head, in the trace's token numbers.
  const HostEntries& entries(std::size_t h) const { return *collected_.heads[h].host; }
  /// Whether the entries of one head are all tokens with unit weights, so that the exact pass is the answer.
  bool complete(std::size_t h) const { return collected_.heads[h].complete; }
  /// Measures the answers to the run's queries of one head: `shared`, or computed here where that is null.
  void answer(HeadBlock& block, QueryRun run, std::size_t h, const Shared* shared, Backend& backend);
  void observe() { session_.observe(); }
  /// Counts the entries that answer the run's queries of one head, where no answer is measured.
  void count(const HeadBlock& block, QueryRun run, std::size_t h) {
    measurements_[h].count(block.exact, run, entries(h));
  }

  /// Stores counts and bytes, after the last block.
  void finish();

 private:
  struct Collected {  // the entries of a run
    struct OfHead {
      BlockPart part;
      methods::EntryTables tables;  // in the trace's token numbers
      std::optional<HostEntries> host;
      bool complete = false;
    };
    std::vector<OfHead> heads;
  };

  /// The trace's number of the next token to append.
  Index next() const { return heads_.front().map.to_global(session_.tokens()); }
  void append(Index end, Backend& backend);
  /// Checks the entries that the cache returned for a head, and reads them in the trace's token numbers.
  void read_entries(std::size_t h, const methods::EntryTables& entries, Index queries, Backend& backend);
  Answer attend(const HostState& fixed, std::size_t h, Backend& backend);
  RecallRange recall_range(std::size_t h) const;
  /// Sets ConfigurationResult::held of a head, after its last query.
  void set_held(std::size_t h);

  Session session_;
  Options options_;
  std::span<const Head> heads_;
  std::vector<ConfigurationResult*> results_;
  std::vector<Measurements> measurements_;  ///< by head
  Collected collected_;
  Index answered_ = 0;  ///< queries of the block
};

/// The configurations of one method and seed on a work item, which differ in their budget. They answer each block of
/// queries together, so that attention over the tokens that their entries have in common is computed once.
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
