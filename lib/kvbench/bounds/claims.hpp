// SPDX-License-Identifier: Apache-2.0
// The table of what can be checked. One file a theorem or claim; its page in docs/theory states it in the paper's notation and
// derives the constants.
#pragma once

#include <atomic>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include <kvbench/bounds/check.hpp>
#include <kvbench/bounds/subject.hpp>
#include <kvbench/core/error.hpp>

namespace kvbench {

struct ValidateOptions {
  Index seeds = 400;    ///< independent trials of a probability statement; 368 without failure certify 1 %
  double alpha = 1e-3;  ///< level of the whole run
  double eps = 0.5;     ///< accuracy of theorems that promise one
  double delta = 0.1;   ///< failure probability that they may have
  Index queries = 8;    ///< a subject
  int threads = 0;      ///< of claims that replay a whole trace
};

/// What a check gets.
struct CheckContext {
  const Subject* subject = nullptr;       ///< Scope::head: never absent
  const trace::Reader* reader = nullptr;  ///< Scope::trace: never absent
  const ValidateOptions& options;
  Backend& backend;
  const std::atomic<bool>* stop = nullptr;
  std::vector<CheckRow>& rows;
  std::string claim;

  /// A new row with the subject's identity filled in. The reference holds until the next call.
  CheckRow& add(CheckKind kind, std::string part);
  /// Throws Interrupted where the user wants to stop: to be called between seeds.
  void poll() const {
    if (stop != nullptr && stop->load()) throw Interrupted();
  }
};

enum class Scope {
  once,   ///< needs no data
  head,   ///< on each subject
  trace,  ///< on a whole trace; replays it
};

struct Claim {
  std::string id;         ///< "subgen.lemma1"
  std::string paper;      ///< arXiv id and place
  std::string statement;  ///< one sentence
  std::string method;     ///< that it is about, for --method; empty: none
  Scope scope = Scope::head;
  std::function<void(CheckContext&)> run;
};

/// In the order of the table in claims.cpp.
std::span<const Claim> all_claims();

/// Claims of these ids or prefixes ("subgen" means all of "subgen.*") that are about these methods; empty: all. Throws Error
/// with the nearest known name.
std::vector<const Claim*> find_claims(const std::vector<std::string>& ids, const std::vector<std::string>& methods);

}  // namespace kvbench
