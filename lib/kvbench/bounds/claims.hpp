// SPDX-License-Identifier: Apache-2.0
// The table of checks. Each theorem or claim has a source file, and a page in docs/theory that states it in the paper's notation and
// derives its constants. Claims about figures are stated by sweep files instead (sweep/figure_claims.hpp).
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
  Index seeds =
      400;  ///< independent trials of a probability statement; 368 without a failure bound its probability by 1 %
  double alpha = 1e-3;  ///< probability that a run without any fault reports one
  double eps = 0.5;     ///< accuracy, for theorems that state one
  double delta = 0.1;   ///< failure probability of these theorems
  Index queries = 8;    ///< per subject
  int threads = 0;      ///< that run checks; 0: all processors
  std::uint32_t seed_offset =
      0;  ///< trials use the seeds from here on: another offset repeats the run with other draws
};

/// What a check is given.
struct CheckContext {
  const Subject* subject = nullptr;       ///< set in Scope::head
  const trace::Reader* reader = nullptr;  ///< set in Scope::trace
  const ValidateOptions& options;
  Backend& backend;
  const std::atomic<bool>* stop = nullptr;
  std::vector<CheckRow>& rows;
  std::string claim;

  /// Appends a row with the identity of the subject. The reference is valid until the next call.
  CheckRow& add(CheckKind kind, std::string part);
  /// The same context for the rows of another claim.
  CheckContext as(std::string other_claim) const {
    CheckContext copy = *this;
    copy.claim = std::move(other_claim);
    return copy;
  }
  /// The seed of a trial, 0 .. seeds - 1.
  std::uint32_t seed(Index trial) const { return options.seed_offset + static_cast<std::uint32_t>(trial); }
  /// Throws Interrupted where the user asked to stop. Checks call it between seeds.
  void poll() const {
    if (stop != nullptr && stop->load()) throw Interrupted();
  }
};

enum class Scope {
  once,   ///< runs once; needs no data
  head,   ///< runs on every subject
  trace,  ///< runs once, on the whole trace, which it replays
};

struct Claim {
  std::string id;         ///< "subgen.lemma1"
  std::string paper;      ///< name, arXiv id and place in the paper
  std::string statement;  ///< one sentence
  std::string method;     ///< the method that the claim is about, for --method; empty: none
  Scope scope = Scope::head;
  std::function<void(CheckContext&)> run;
};

/// All checks, in the order of the table in claims.cpp.
std::span<const Claim> all_claims();

/// Those of `claims` with these ids or prefixes ("subgen" means all of "subgen.*") about these methods; an empty list means all. Throws
/// Error with the nearest known name.
std::vector<const Claim*> find_claims(std::span<const Claim> claims, const std::vector<std::string>& ids,
                                      const std::vector<std::string>& methods);

}  // namespace kvbench
