// SPDX-License-Identifier: Apache-2.0
// The contract of a check: what it is given, and what it must say about itself. validate/all_checks.cpp has the table
// of all.
#pragma once

#include <atomic>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include <kvbench/bounds/check/subject.hpp>
#include <kvbench/core/error.hpp>
#include <kvbench/evidence/check_row.hpp>

namespace kvbench::bounds {

using evidence::CheckKind;
using evidence::CheckRow;
using evidence::ValidateOptions;

/// Which statement of the check a row is about.
struct Statement {
  std::string part;         ///< in words, with its sizes; empty where the check has no parts
  std::string params = {};  ///< "delta=0.5;t=16"
};

/// Figures that a row shows, with the names of CheckRow. What is left out does not apply.
struct Figures {
  double measured = NAN, bound = NAN, measured_q99 = NAN;
  double literal = NAN, tight = NAN, data = NAN, trivial = NAN;
};

/// Failures over independent seeds, and their probability that the statement allows.
struct Failures {
  std::int64_t count = 0, trials = 0;
  double allowed = NAN;
};

/// The test of a claim in both directions.
struct TwoWayTest {
  double p_value = NAN;          ///< two-sided; NaN: untestable
  bool holds = false;            ///< whether the measured value has the direction that the claim states
  double p_least = NAN;          ///< the smallest p-value that so many units could give; NaN: any
  Index units = 0;               ///< independent units; 0: not counted
  double units_needed = NAN;     ///< for a power of 80 % if the effect were the measured one
  std::string over_places = {};  ///< the units, where they are layers and texts
};
/// From the one-sided p-values of the data if the claim did not hold, and if it did.
TwoWayTest decide_between(double p_for, double p_against);

/// What a check is given.
struct CheckContext {
  const Subject* subject = nullptr;       ///< set in Scope::head
  const trace::Reader* reader = nullptr;  ///< set in Scope::trace
  const ValidateOptions& options;
  Backend& backend;
  const std::atomic<bool>* stop = nullptr;
  std::vector<CheckRow>& rows;
  std::string check;  ///< its id

  // Each kind of row has its builder, which appends a row with the identity of the subject. Arguments: the statement,
  // what the kind needs, the values in a sentence, and what may be left out. References are valid until the next row.

  /// p_value: of the data if the law holds. Above 1 it counts as 1, so that it may be the smallest of k p-values times
  /// k. ratio: a measured value over the one that the law states; it becomes `measured`, beside a `bound` of 1.
  CheckRow& law(const Statement& statement, double p_value, const std::string& text, double ratio = NAN);
  /// Exceptions: the cases in which the statement does not hold. figures: how near the worst case came to its bound.
  CheckRow& exact(const Statement& statement, std::int64_t exceptions, std::int64_t cases, const std::string& text = "",
                  const Figures& figures = {}) {
    return add(CheckKind::exact, statement, text, figures, {exceptions, cases, 0});
  }
  /// figures: `bound`, which is one of literal, tight and data, `trivial`, and what was measured. Without failures the
  /// bound alone is stated, which is vacuous or not applicable; a theorem about a mean sets the p_value of its row
  /// instead. add_theorem() (bounds/trials) chooses the worst of several queries.
  CheckRow& theorem(const Statement& statement, const Figures& figures, const std::string& text = "",
                    const Failures& failures = {}) {
    return add(CheckKind::theorem, statement, text, figures, failures);
  }
  /// Numbers for the reader: nothing is tested.
  CheckRow& data(const Statement& statement, const Figures& figures, const std::string& text = "") {
    return add(CheckKind::data, statement, text, figures);
  }
  /// figures: `measured`, and the `bound` that it is compared with. add_claim() and add_error_claim() (bounds/trials)
  /// test claims about differences.
  CheckRow& claim(const Statement& statement, const TwoWayTest& test, const std::string& text,
                  const Figures& figures = {});
  /// A declared cost, which must be at most the stated one; NaN is not.
  CheckRow& cost(const Statement& statement, double measured, double bound, const std::string& text) {
    return add(CheckKind::cost, statement, text, {.measured = measured, .bound = bound}, {!(measured <= bound), 1, 0});
  }
  /// Declared costs that must have the stated order at each of several sizes. measured: one cost over another.
  CheckRow& cost_order(const Statement& statement, std::int64_t out_of_order, std::int64_t sizes, double measured,
                       const std::string& text) {
    return add(CheckKind::cost, statement, text, {.measured = measured}, {out_of_order, sizes, 0});
  }
  /// A statement of any kind that this subject cannot test: its assumptions are not met, or there are no data.
  CheckRow& not_tested(CheckKind kind, const Statement& statement, const std::string& reason) {
    CheckRow& row = add(kind, statement, reason, {});
    row.assumptions = false;
    return row;
  }

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

 private:
  CheckRow& add(CheckKind kind, const Statement& statement, const std::string& text, const Figures& figures,
                const Failures& failures = {});
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
  std::string method;     ///< the method that the check is about, for --method; empty: the first part of its id
  Scope scope = Scope::head;
  std::function<void(CheckContext&)> run;

  std::string about() const { return method.empty() ? id.substr(0, id.find('.')) : method; }
};

}  // namespace kvbench::bounds
