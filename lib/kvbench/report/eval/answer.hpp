// SPDX-License-Identifier: Apache-2.0
// Where methods stand by their damage to the output of the model, on one text or on several together: which change it
// least, which cannot be told from the best; and the rows as kveval prints them.
#pragma once

#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <kvbench/core/statistics.hpp>
#include <kvbench/evidence/standing.hpp>
#include <kvbench/report/document/document.hpp>
#include <kvbench/report/eval/sections.hpp>

namespace kvbench::report {

/// The rows of one text: over all documents, and one per document where the evaluation wrote them.
using RowsOfText = std::vector<const EvalRow*>;

/// A configuration at one budget on one task, with rows on every text.
struct DamageOf {
  std::string name;
  std::vector<const EvalRow*> of_texts;                      ///< over all documents, one per text
  std::map<std::pair<std::size_t, std::string>, double> kl;  ///< by text and digest of the document

  /// The mean over the texts of value(row).
  template <class F>
  double mean_of(F value) const {
    std::vector<double> values;
    for (const EvalRow* r : of_texts) values.push_back(value(*r));
    return mean(values);
  }
};

/// The configurations of one task and budget that compressed the most layers. What is tested is the geometric mean over
/// documents, where there are rows of them: each configuration against the best by the logarithm of the ratio of their
/// KL on each document (Student's t over the documents of all texts, Holm over the comparisons at 5 %); with fewer than
/// three documents, or without rows per document, nothing is tested.
struct DamageStanding {
  std::vector<DamageOf> all;  ///< Mark::row of the standing is a number in it
  evidence::Standing standing;
  bool over_documents = false;
  std::vector<double> factors;  ///< by which KL must differ from that of the best to be told from it

  const DamageOf& best() const { return all[standing.best.row]; }
};

/// Of each task and budget that has two configurations with injection `all`, references and `random` apart.
std::vector<DamageStanding> damage_standings(std::span<const RowsOfText> texts);

/// Sentences per task and budget, over rows with injection `all` that compressed the most layers, as
/// damage_standings() tests them. Methods are ranked by KL, over several texts by its geometric mean. Empty where no
/// task has two methods at one budget.
std::vector<std::string> damage_answers(std::span<const RowsOfText> texts);

/// The rows of a section as damage_answers() takes them.
RowsOfText rows_of(const EvalSection& section);

/// What sections over several texts, or over several lengths of the `context`, have in common.
std::string setting_of(const EvalSection& section, const std::string& context);

/// The sections of one model and setting on several texts.
struct TextsTogether {
  std::string scope;  ///< "MODEL on a.txt, b.txt together"
  std::vector<const EvalSection*> sections;

  std::vector<RowsOfText> rows() const;
};
/// Those with at least two texts.
std::vector<TextsTogether> texts_together(std::span<const EvalSection> sections);

/// The most important columns of the rows over all documents and layers: by task, in ascending order of KL for each
/// budget.
DocTable overall_table(std::span<const EvalRow> records);

/// At most answer_lines: a table of configurations without its title, what its last columns mean, and how many are not
/// shown, which `rest` says how to see.
std::vector<Block> brief_table(DocTable table, const std::string& meaning, const std::string& rest);

/// At most answer_lines: the answers, the rows of the first task and budget with the lowest KL, and how many rows are
/// not shown, which `rest` says how to see. `answers`: damage_answers().
std::vector<Block> brief_evaluation(const std::vector<std::string>& answers, std::span<const EvalRow> records,
                                    const std::string& rest);

}  // namespace kvbench::report
