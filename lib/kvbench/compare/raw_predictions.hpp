// SPDX-License-Identifier: Apache-2.0
// Predicted KL of single probes from a file of `replay --raw`, for comparisons of methods on the same probes.
#pragma once

#include <kvbench/compare/comparison.hpp>
#include <kvbench/compare/raw_reader.hpp>
#include <kvbench/replay/records/predicted_kl.hpp>

namespace kvbench::compare {

/// A place is a text, or with Span::layer a layer of a text; its values are the unit_predictions() of a configuration
/// and seed, of all layers of the text together: in place of queries there are probes, or, where the layers of the file
/// are a sample of those of the model, layers and probes. A layer in which a method did not run has no error.
class RawPredictions : public QueryResults {
 public:
  /// Throws Error as RawReader does, and with the remedy where no text of the file has probes.
  RawPredictions(std::string path, Span span);

  const std::string& path() const override { return raw_.path(); }
  const std::vector<QueryPlace>& places() const override { return places_; }
  const std::vector<QueryConfiguration>& configurations() const override { return raw_.configurations(); }
  /// Throws as RawReader::read().
  std::optional<QueryValues> read(std::size_t place, std::size_t configuration) const override;

 private:
  /// The result of the kv heads of a place, whose places in the file are these.
  std::optional<QueryValues> status_of(std::span<const std::size_t> heads, std::size_t configuration) const;

  RawReader raw_;
  replay::PredictedLayers layers_;
  std::vector<QueryPlace> places_;
  std::vector<std::vector<std::size_t>> heads_;  ///< of each place: the first query head of each kv head in the file
};

}  // namespace kvbench::compare
