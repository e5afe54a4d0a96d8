// SPDX-License-Identifier: Apache-2.0
// The contract of a method. A method decides which entries, with which weights, answer a query; the harness computes
// outputs, errors, bytes and times from them and verifies everything that a method returns.
//
// A method is a function prepare(heads, parameters, backend) that returns a MakeCaches, which makes the caches of one
// budget and seed. Numbers go through the backend's kernels, so that the same source runs on every device.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <kvbench/kernels/backend.hpp>
#include <kvbench/methods/contract/entries.hpp>
#include <kvbench/methods/contract/footprint.hpp>
#include <kvbench/methods/contract/inputs.hpp>
#include <kvbench/methods/contract/note.hpp>

namespace kvbench::methods {

/// Thrown where the trace lacks what a configuration needs; the row gets the status `skipped` and this reason.
class Unavailable : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};
/// The message of Unavailable of entries with values that are no part of their keys, where those of tokens are (MLA).
inline constexpr const char* values_apart =
    "its entries have values that are no part of their keys, and in this trace the values are a part of the keys "
    "(MLA), "
    "which a cache stores as one row";

/// Thrown where a configuration exceeds one of its own limits or a budget cannot be met; the row gets the status
/// `infeasible`.
class Infeasible : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Thrown where a method fails in a way that concerns its author: what() is one line, details() all that is known, such
/// as a traceback. Every other exception of a method is a failure without details.
class Failed : public std::runtime_error {
 public:
  Failed(const std::string& line, std::string details)
      : std::runtime_error(line), details_(std::make_shared<const std::string>(std::move(details))) {}
  const std::string& details() const { return *details_; }

 private:
  std::shared_ptr<const std::string> details_;  // shared: copying an exception must not throw
};

/// Tokens that the method always keeps. Recall does not count them.
struct Protected {
  Index sinks = 0;       ///< first tokens of the context
  Index recent = 0;      ///< last tokens of the context
  bool decoded = false;  ///< every decoded token
};

/// Consecutive tokens.
struct TokenRange {
  Index first = 0, count = 0;
};

/// The compressed cache of one kv head, for one budget and seed.
///
/// The caches of a work item, one for each of its kv heads, go through the steps of decoding together. A step has
/// phases, each of which is done on all heads before the next begins; within a phase the heads come in any order, which
/// must not change a result:
///   takes()     how many of the decoded tokens that come next
///   append()    the first of them, as many as the head takes that takes the fewest
///   announce()  the queries to be answered
///   entries()   that answer them
///   observe()   the attention over them, where MethodInfo::observes
/// A step without new tokens begins with announce(), and one without queries ends with append(). The other functions
/// are called between steps. kvbench::Session keeps this order.
///
/// Threads: the caches of a work item, and the MakeCaches that made them, are used by one thread at a time, so that
/// what they share needs no lock. Those of other work items run at the same time on other threads.
class CompressedCache {
 public:
  virtual ~CompressedCache() = default;

  /// How many of these decoded tokens, from the front, append() takes at once: the longest run (at least one) such that
  /// the state after it, masked causally by id, answers the query of every token taken. A method whose state changes
  /// with every token takes one; a method that only adds tokens takes all. append() follows for the same tokens.
  virtual Index takes(const TokenBlock& /*tokens*/) { return 1; }
  /// Takes decoded tokens, the first ones of those that takes() was asked about, and not more than it said.
  virtual void append(const TokenBlock& tokens) = 0;

  /// The queries that entries() is asked about next. Methods that see a layer need those of all heads to answer one.
  virtual void announce(const QueryBlock& /*queries*/) {}
  /// The entries that answer these queries, in the state after the tokens taken so far. A block that has positions and
  /// no queries asks what the cache holds: quantisers ask so between steps, unannounced, but not in Kind::retrieval.
  virtual EntryTables entries(const QueryBlock& queries) const = 0;

  /// The attention over those entries after a single decode step: weights[t] is the softmax over all entries,
  /// restricted to table t, [G, width]. Called only where MethodInfo::observes; append() then takes one token.
  virtual void observe(const QueryBlock& /*queries*/, const EntryTables& /*entries*/,
                       std::span<const Buffer<const float>> /*weights*/) {}

  virtual Footprint footprint() const = 0;
  virtual Protected protected_tokens() const { return {}; }
  /// Kind::retrieval: the tokens of the full cache, from which entries are chosen per query. Their keys and values are
  /// the arrays of Element::kv in the footprint that are read with entries, with a row each.
  virtual TokenRange retrievable() const { return {}; }
  /// Remarks at the end of the run; they are printed in the row's `reason`. Those of a layer are of its first head.
  virtual std::vector<Note> notes() const { return {}; }
};

/// A cache that computes on a backend, of a head of G query heads, keys [n, d] and values [n, dv].
class HeadCache : public CompressedCache {
 protected:
  HeadCache(const HeadPrompt& head, Backend& backend)
      : backend_(backend), group_(head.group), d_(head.keys.cols()), dv_(head.values.cols()) {}

  Backend& backend_;
  Index group_, d_, dv_;
};

/// Makes the cache of a budget (tokens to keep, at least 1) and a seed. It holds the results of prepare() for the head.
/// It may compute further results on first use, provided that a cache does not depend on the caches made before it. A
/// cache may outlive it; the backend outlives both.
using MakeCache = std::function<std::unique_ptr<CompressedCache>(Index budget, std::uint32_t seed)>;

/// The caches of the kv heads of a work item, in its order. Methods that see a layer let them share what they need of
/// each other (std::shared_ptr).
using Caches = std::vector<std::unique_ptr<CompressedCache>>;
using MakeCaches = std::function<Caches(Index budget, std::uint32_t seed)>;

/// Makes caches that do not affect each other.
inline MakeCaches each_head(std::vector<MakeCache> heads) {
  return [heads = std::move(heads)](Index budget, std::uint32_t seed) {
    Caches caches;
    for (const MakeCache& make : heads) caches.push_back(make(budget, seed));
    return caches;
  };
}
/// Makes the cache of a work item of one head.
inline MakeCache only_head(MakeCaches heads) {
  return
      [heads = std::move(heads)](Index budget, std::uint32_t seed) { return std::move(heads(budget, seed).front()); };
}

}  // namespace kvbench::methods
