// SPDX-License-Identifier: Apache-2.0
// A configured method under test on one backend.
#pragma once

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <kvbench/methods/contract/info.hpp>
#include <kvbench/session/session.hpp>
#include <kvbench/testing/head.hpp>

namespace kvbench::testing {

/// A method with its parameters bound.
struct Row {
  const methods::MethodInfo* info = nullptr;
  methods::Params params;
};

/// The contract is broken: a sentence.
class Broken : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};
/// Throws Broken with this sentence unless it holds.
template <class... Args>
void require(bool holds, fmt::format_string<Args...> sentence, Args&&... args) {
  if (!holds) throw Broken(fmt::format(sentence, std::forward<Args>(args)...));
}

/// The kv heads that one instance of the method holds: one, or three of a layer.
using Heads = std::vector<HeadData>;

/// The caches of the kv heads of an instance, or why there are none. The objects from which they were made have been
/// destroyed.
struct Instance {
  std::unique_ptr<Session> session;
  std::string refusal;
};

/// The results of a kv head for a run of queries: entries and answers, by query row g*m + i.
struct Result {
  std::vector<std::vector<Entry>> entries;
  std::vector<float> answers;
  friend bool operator==(const Result&, const Result&) = default;
};

/// A method prepared for the kv heads of an instance, from which caches are made.
class PreparedRow {
 public:
  PreparedRow(const Row& row, const Heads& heads, Backend& backend);
  /// The caches, in the order of the heads or in reverse. Throws Infeasible as the method does. The budget of a planned
  /// method is that of the plan for the layer.
  Instance open(Index budget, std::uint32_t seed, bool reversed = false) const;

 private:
  const Row& row_;
  Backend& backend_;
  methods::HeadPrompt head_;   ///< of the first head
  std::vector<float> scores_;  ///< of the heads, where the method ranks them; in any layer
  methods::MakeCaches make_;
};

/// Runs a row, and remembers what it runs, which sentences about it end with.
class Trial {
 public:
  Trial(const Row& row, Backend& backend) : row_(row), backend_(backend) {}
  const Row& row() const { return row_; }
  const methods::MethodInfo& info() const { return *row_.info; }
  Backend& backend() const { return backend_; }

  /// Random heads of this shape, with enough channels for whole blocks of the row (MethodInfo::block). Heads of other
  /// streams are independent.
  Heads heads(const Shape& shape = {}, std::uint32_t stream = 0) const;

  /// Whether the row is asked for at most the tokens of its context, as replays do: methods in Python are.
  bool limited() const;
  /// Throws Unavailable or Infeasible as the method does.
  Instance open(const Heads& heads, Index budget, std::uint32_t seed = 1);
  /// The same, with the reason in place of a cache.
  Instance try_open(const Heads& heads, Index budget, std::uint32_t seed = 1);

  /// The context is compressed, the tokens after it are exact, the queries after it are answered. Throws where the
  /// entries break the contract.
  std::vector<Result> prefill(const Instance& instance, const Heads& heads);
  /// The tokens after the context are appended in blocks of at most `block`, and the queries of each block are
  /// answered. Results are those of single queries, [head][token], rows g. Throws where the entries break the contract.
  std::vector<std::vector<Result>> decode(const Instance& instance, const Heads& heads, Index block = 5);

  /// Names the inputs of what follows: "equal keys".
  void describe(std::string inputs) { inputs_ = std::move(inputs); }
  /// "equal keys, budget 5, seed 1, decode"
  std::string place() const;

 private:
  const Row& row_;
  Backend& backend_;
  std::string inputs_, cache_;
  const char* phase_ = "";
};

/// Why the settings of a row lift a demand; empty where they do not.
std::string lifted(const Row& row, std::string_view demand);
/// Largest difference; infinity where either is not finite.
double max_difference(const std::vector<float>& a, const std::vector<float>& b);
bool all_finite(const std::vector<float>& values);
/// Why a row does not have the property; empty where it declares it. Throws Broken where it gives no reason.
std::string reason_against(const methods::Property& property);
/// Throws Broken where an answer is no finite number.
void require_finite(const std::vector<Result>& results);

}  // namespace kvbench::testing
