// SPDX-License-Identifier: Apache-2.0
// The contract of a method. A method decides which entries, with which weights, answer a query; the harness computes
// outputs, errors, bytes and times from them and verifies everything that a method returns.
//
// A method is a function prepare(head, parameters, backend) that returns a MakeCache, which makes the cache of one
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

namespace kvbench::methods {

/// Thrown where the trace lacks what a configuration needs; the row gets the status `skipped` and this reason.
class Unavailable : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};
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

/// A remark that a row reports with its figures: an event with its count, or a fact (count 0).
struct Note {
  std::string text;
  double count = 0;  ///< summed over heads and seeds
};
/// Adds the notes to `merged`, in which notes of equal text are one, with their counts summed.
void merge_notes(std::vector<Note>& merged, std::span<const Note> notes);
/// "TEXT: COUNT", or the text of a fact.
std::string describe(const Note& note);

/// The compressed cache of one kv head, for one budget and seed.
class CompressedCache {
 public:
  virtual ~CompressedCache() = default;

  /// Takes decoded tokens, in order, from the front of `tokens`, and returns how many: the longest run (at least one)
  /// such that the state after it, masked causally by id, answers the query of every token taken. A method whose state
  /// changes with every token takes one; a method that only adds tokens takes all.
  virtual Index append(const TokenBlock& tokens) = 0;

  /// The entries that answer these queries, in the state after the tokens taken so far.
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
  /// Remarks at the end of the run; they are printed in the row's `reason`.
  virtual std::vector<Note> notes() const { return {}; }
};

/// Makes the cache of a budget (tokens to keep, at least 1) and a seed. It holds the results of prepare() for the head.
/// It may compute further results on first use, provided that a cache does not depend on the caches made before it. A
/// cache may outlive it; the backend outlives both.
using MakeCache = std::function<std::unique_ptr<CompressedCache>(Index budget, std::uint32_t seed)>;

/// The same for methods that see all kv heads of a layer at once. Vectors and spans run over the kv heads of the layer.
class LayerCache {
 public:
  virtual ~LayerCache() = default;
  virtual Index append(std::span<const TokenBlock> tokens) = 0;
  virtual std::vector<EntryTables> entries(std::span<const QueryBlock> queries) const = 0;
  virtual void observe(std::span<const QueryBlock> /*queries*/, std::span<const EntryTables> /*entries*/,
                       std::span<const std::vector<Buffer<const float>>> /*weights*/) {}
  virtual std::vector<Footprint> footprint() const = 0;
  virtual std::vector<Protected> protected_tokens() const = 0;
  virtual TokenRange retrievable() const { return {}; }   ///< the same on all heads
  virtual std::vector<Note> notes() const { return {}; }  ///< of all heads together
};
using MakeLayerCache = std::function<std::unique_ptr<LayerCache>(Index budget, std::uint32_t seed)>;

}  // namespace kvbench::methods
