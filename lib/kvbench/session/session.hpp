// SPDX-License-Identifier: Apache-2.0
// The caches of the kv heads of a work item while tokens are decoded: the only code outside of methods that drives
// caches, and that keeps the order of their contract (methods/contract/method.hpp). Vectors and spans run over the kv
// heads.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include <kvbench/methods/contract/attend.hpp>
#include <kvbench/methods/contract/host_table.hpp>
#include <kvbench/methods/contract/method.hpp>

namespace kvbench {

/// Not to be used by two threads at a time.
class Session {
 public:
  /// Of caches that hold `context` tokens and were made on `backend`. observes: MethodInfo::observes.
  Session(methods::Caches caches, Index context, bool observes, Backend& backend);
  /// Of a single head.
  Session(std::unique_ptr<methods::CompressedCache> cache, Index context, Backend& backend, bool observes = false);

  /// The tokens so far: those of the context, and the appended ones.
  Index tokens() const { return tokens_; }

  /// Appends tokens to all heads, from the front of the blocks, which are of equal size, and returns how many: as many
  /// as the head takes that takes the fewest, and one where the method observes. Throws std::logic_error where a cache
  /// takes none, or more than there are.
  Index append(std::span<const methods::TokenBlock> tokens);

  /// The entries that answer the queries of each head, until the next call.
  const std::vector<methods::EntryTables>& entries(std::vector<methods::QueryBlock> queries);
  /// The entries of one head on the host. Throws std::logic_error where they break the contract (check_entries()).
  /// `tokens` has the shapes of the head.
  std::vector<methods::HostTable> checked(std::size_t head, const methods::HeadTokens& tokens);

  /// Adds attention over `tables`, which are the entries of the head or stand for them, to `state`,
  /// and clamps the outputs where a table has a range.
  methods::HostState attend(std::size_t head, const methods::HeadTokens& tokens, const methods::QueryBlock& queries,
                            const methods::EntryTables& tables, methods::AttentionState state);
  /// Shows the caches the attention that attend() has computed on each head. Does nothing where the method does not
  /// observe it.
  void observe();

  std::vector<methods::Footprint> footprint() const;
  std::vector<methods::Protected> protected_tokens() const;
  /// Of all heads, those of equal text as one.
  std::vector<methods::Note> notes() const;

 private:
  struct Seen {  ///< the attention over the entries of a head
    methods::EntryTables tables;
    std::vector<Buffer<float>> logits;
    methods::HostState state;
  };

  methods::Caches caches_;
  Index tokens_;
  bool observes_;
  Backend* backend_;
  std::vector<methods::QueryBlock> queries_;
  std::vector<methods::EntryTables> entries_;
  std::vector<methods::EntryChecker> checkers_;
  std::vector<Seen> seen_;
};

}  // namespace kvbench
