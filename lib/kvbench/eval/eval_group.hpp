// SPDX-License-Identifier: Apache-2.0
// The figures of one configuration, without its seed, on a set of documents.
#pragma once

#include <vector>

#include <kvbench/core/statistics.hpp>
#include <kvbench/eval/eval_record.hpp>

namespace kvbench::eval {

/// The passes of a row that are ok, on the grid of documents and seeds that the bootstrap resamples.
class EvalGroup {
 public:
  /// `passes`: of one task, injection, method, parameters and budget; not empty.
  /// `turn`: figures are those of one turn, of documents that have it; 0: of all scored tokens.
  EvalGroup(const EvalResults& results, std::vector<const PassResult*> passes, Index turn = 0);

  /// Sets everything of a row over all layers but its identity. `verdicts`: also the tests.
  void fill(EvalRecord& record, const EvalRows& rows, bool verdicts) const;
  /// The numbers of the layers that any pass has, ascending.
  std::vector<std::int64_t> layers() const;
  /// Sets the errors of one layer, or their means over all layers.
  void fill_errors(EvalRecord& record, std::optional<std::int64_t> layer) const;

 private:
  struct Place {
    const PassResult* pass;
    PassSums sums;
    std::size_t document, seed;  ///< row and column of the grid
  };
  double total(double PassSums::*value) const;
  bool has_short() const;  ///< whether all documents have scores with a short context
  Interval positive_interval(std::span<const double> sums, std::span<const double> counts) const;
  Estimate estimate(const MeanOf& mean, bool interval, bool positive) const;
  std::vector<double> divergences() const;
  /// A figure; those before it in the table are set.
  Estimate estimate(const DamageFigure& figure, const EvalRecord& record) const;
  void fill_costs(EvalRecord& record) const;
  void fill_spans(EvalRecord& record) const;
  void test_nll(EvalRecord& record, const EvalRows& rows) const;
  void test_match(EvalRecord& record, const EvalRows& rows) const;
  void test_json(EvalRecord& record, const EvalRows& rows) const;
  const EvalDocument& document_of(const Place& place) const { return results_->documents[place.pass->document]; }

  const EvalResults* results_;
  std::vector<const PassResult*> all_;
  Index turn_;
  std::vector<Place> places_;
  std::size_t documents_ = 0, seeds_ = 0;
};

}  // namespace kvbench::eval
