// SPDX-License-Identifier: Apache-2.0
// Predicted KL of single probes from results that hold their sums, for comparisons of methods on the same probes.
#pragma once

#include <array>
#include <iterator>
#include <memory>

#include <kvbench/compare/comparison.hpp>

namespace kvbench::compare {

/// A place is a text of a run, or with Span::layer a layer of it; its values are the unit_predictions() of a
/// configuration and seed, of all layers of the text together: in place of queries there are probes, or, where the
/// layers of the run are a sample of those of the model, layers and probes. A layer in which a method did not run has
/// no error. Texts without probes have no place. A text whose prediction is outside its region
/// (replay::largest_stream_error) is skipped with this reason. As in rows of a replay, predictions over all layers of
/// the model are multiplied by the ratio of the anchors of their kind, and skipped if this is too large. Plans are
/// skipped if the layers are a sample, which says nothing about the others.
class Predictions : public QueryResults {
 public:
  /// `results` are open for stream_err. Throws as their read() does.
  Predictions(std::shared_ptr<const QueryResults> results, Span span);

  const std::string& path() const override { return results_->path(); }
  const std::vector<QueryPlace>& places() const override { return places_; }
  const std::vector<QueryConfiguration>& configurations() const override { return results_->configurations(); }
  /// Throws as the results do, and Error where heads of a text have different numbers of probes.
  std::optional<QueryValues> read(std::size_t place, std::size_t configuration) const override;

 private:
  /// The result of the kv heads of a place, whose places in the results are these, without values; ok results outside
  /// the region are skipped.
  std::optional<QueryValues> status_of(std::span<const std::size_t> heads, std::size_t configuration) const;

  std::shared_ptr<const QueryResults> results_;
  std::vector<QueryPlace> places_;
  std::vector<replay::PredictedLayers> layers_;  ///< of each place, without anchors
  /// Of each place, by ChangeKind: QueryResults::anchor_factor(); 1 where its layers do not stand for all of the model.
  std::vector<std::array<double, std::size(replay::change_kinds)>> factors_;
  std::vector<std::vector<std::size_t>> heads_;  ///< of each place: the first query head of each kv head
};

}  // namespace kvbench::compare
