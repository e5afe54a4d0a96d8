// SPDX-License-Identifier: Apache-2.0
// What a reader may conclude from rows at one budget: which method has the lowest error, which are not distinguishable
// from it, and whether the rows cost the same.
#pragma once

#include <span>
#include <string>
#include <vector>

#include <kvbench/evidence/standing.hpp>
#include <kvbench/replay/records/record.hpp>

namespace kvbench::report {

/// "snapkv[window=64]"
std::string label(const replay::Record& r);
/// The mean by which rows are ranked: the geometric one over layers and texts where these were tested, else that of the
/// figure that ranks the row (Record::ranked_by).
double error_of(const replay::Record& r);
/// Whether it would be ranked, if it could be predicted: not a reference (compare::is_baseline()), and not calibrated
/// on what it is evaluated on.
bool is_method(const replay::Record& r);

/// What the rows at one budget of one trace, protocol and run say.
struct BudgetAnswer {
  std::string run, trace;  ///< empty where all rows have the same
  Budget budget;
  evidence::Standing standing;
  std::vector<const replay::Record*> ranked = {};  ///< the rows of Standing::ranked()
  std::string verdict = "";                        ///< standing_sentence()
  std::string brief = "";  ///< the same beside a table (StandingWords::table), and why others are not ranked
  std::string needs = "";  ///< what a test needs where nothing was tested; else ""
  std::vector<const replay::Record*> outside = {};  ///< cannot be predicted
  std::string large = "";  ///< the ranked rows whose predictions do not say how large the damage is: "h2o (0.206)"
  std::vector<std::string> notes =
      {};                 ///< wins over texts; rows that were not tested; families; means that huge errors make
  std::string cost = "";  ///< where rows differ by more than 5 % in what the budget limits; else ""
};

/// In order of appearance, over rows with one row per trace and configuration; budgets with two ranked rows or more.
/// References (exact, oracle-topk, random) are not ranked. `of_texts`: rows that also hold those of single texts; each
/// answer says how many of them agree (wins_of).
std::vector<BudgetAnswer> budget_answers(std::span<const replay::Record> rows,
                                         std::span<const replay::Record> of_texts = {});

/// What tests take where nothing was tested: one sentence for answers whose needs differ in numbers alone. "" where all
/// were tested.
std::string needs_of(std::span<const BudgetAnswer> answers);

/// "The lowest error of each family: eviction h2o (0.1), ..." (or predicted KL), where there are several; else "".
/// Families of the first `shown` rows are left out: "of each other family".
std::string family_note(std::span<const replay::Record* const> ranked, std::size_t shown = 0);

/// Where the notes of a budget stand: with its verdict, or behind the verdicts and costs of all budgets, where one
/// sentence says what holds at several.
enum class Notes { of_budget, last };

/// The rows that are not ranked because they were calibrated on what they are evaluated on.
std::vector<std::string> calibrated_on_themselves(std::span<const replay::Record> rows);

/// All sentences of budget_answers(), followed by one that names the rows that were calibrated on what they are
/// evaluated on, which are not ranked.
std::vector<std::string> answers_of(std::span<const replay::Record> rows, std::span<const replay::Record> of_texts = {},
                                    Notes notes = Notes::of_budget);

/// "At 25 % of the memory, a has the lowest error on 1 of 2 texts, b on 1.": one sentence per budget that was replayed
/// on several texts (summarize_texts).
std::vector<std::string> wins_of(std::span<const replay::Record> records);

/// "Layers 1, 8, 15 of 30." or "All 30 layers.", where all rows that are ok summarise the same layers of one model;
/// else "".
std::string layers_of(std::span<const replay::Record> rows);

}  // namespace kvbench::report
