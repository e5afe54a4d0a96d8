// SPDX-License-Identifier: Apache-2.0
// The contract of a check: what it is given, and what it must say about itself. validate/all_checks.hpp has the table
// of all.
#pragma once

#include <atomic>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include <kvbench/bounds/check/row.hpp>
#include <kvbench/bounds/check/subject.hpp>
#include <kvbench/core/error.hpp>

namespace kvbench::bounds {

struct ValidateOptions {
  /// independent trials of a probability statement; 368 without a failure bound its probability by 1 %
  Index seeds = 400;
  double alpha = 1e-3;  ///< probability that a run without any fault reports one
  double eps = 0.5;     ///< accuracy, for theorems that state one
  double delta = 0.1;   ///< failure probability of these theorems
  Index queries = 8;    ///< per subject
  int threads = 0;      ///< that run checks; 0: all processors
  /// trials use the seeds from here on: another offset repeats the run with other draws
  std::uint32_t seed_offset = 0;
};

/// What a check is given.
struct CheckContext {
  const Subject* subject = nullptr;       ///< set in Scope::head
  const trace::Reader* reader = nullptr;  ///< set in Scope::trace
  const ValidateOptions& options;
  Backend& backend;
  const std::atomic<bool>* stop = nullptr;
  std::vector<CheckRow>& rows;
  std::string check;  ///< its id

  /// Appends a row with the identity of the subject. The reference is valid until the next call.
  CheckRow& add(CheckKind kind, std::string part);
  /// The same context for the rows of another check.
  CheckContext as(std::string other_check) const {
    CheckContext copy = *this;
    copy.check = std::move(other_check);
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

struct Check {
  std::string id;         ///< "subgen.lemma1"
  std::string paper;      ///< name, arXiv id and place in the paper
  std::string statement;  ///< one sentence
  std::string method;     ///< the method that the check is about, for --method; empty: none
  Scope scope = Scope::head;
  std::function<void(CheckContext&)> run;
};

}  // namespace kvbench::bounds
