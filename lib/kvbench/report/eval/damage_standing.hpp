// SPDX-License-Identifier: Apache-2.0
// Where methods stand by their damage to the output of the model, on one text or on several together.
#pragma once

#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <kvbench/core/statistics.hpp>
#include <kvbench/eval/eval_record.hpp>
#include <kvbench/evidence/standing.hpp>
#include <kvbench/evidence/values.hpp>

namespace kvbench::report {

/// The rows of one text: over all documents, and one per document where the evaluation wrote them.
using RowsOfText = std::vector<const eval::EvalRecord*>;

/// A configuration at one budget on one task, with rows on every text.
struct DamageOf {
  std::string name;
  std::vector<const eval::EvalRecord*> of_texts;             ///< over all documents, one per text
  std::map<std::pair<std::size_t, std::string>, double> kl;  ///< by text and digest of the document

  /// The mean over the texts of value(row).
  template <class F>
  double mean_of(F value) const {
    std::vector<double> values;
    for (const eval::EvalRecord* r : of_texts) values.push_back(value(*r));
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

}  // namespace kvbench::report
