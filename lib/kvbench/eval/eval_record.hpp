// SPDX-License-Identifier: Apache-2.0
// Rows of an evaluation: scores summarised over tokens, documents and seeds. lib/kvbench/report gives them names and
// text.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include <kvbench/eval/damage.hpp>
#include <kvbench/replay/records/row.hpp>

namespace kvbench::eval {

/// Which rows are requested beside those over all documents and layers.
struct EvalRows {
  bool documents = false;  ///< also one per document; the intervals of `kvbench report` need them
  /// also one per layer, with the errors of the layer, for rows over documents (and per document)
  bool layers = false;
  double nll_margin = 0.02;  ///< "no difference" of nll: its mean difference lies within +- this, nats per token
  /// "no difference" of exact match, or of valid JSON: its difference lies within +- this
  double match_margin = 0.05;
  double least_match = 0.5;  ///< exact match, or valid JSON, of the full cache below which a task cannot discriminate
};

/// What the paired comparison with the full cache shows.
enum class Difference { none, worse, better, undecided, cannot_discriminate, not_measured };
std::string_view name_of(Difference difference);

/// `layer`: rows per layer have only `metrics`, `drift` and `residual`.
struct EvalRecord : replay::RowIdentity, replay::Costs {
  std::string text, task;
  std::string document;  ///< name, or "all"
  std::string question;  ///< as EvalResults::question()
  Index context_tokens = 0;
  std::string document_sha256;   ///< digest_of() the document; "" where `document` is "all"
  std::string documents_sha256;  ///< of all documents of the task
  Index turn = 0;                ///< of a conversation, from 1; 0: the row is over all scored tokens
  std::string scored_sha256;     ///< digest_of_scored() the document; "" where `document` is "all"
  EvalSettings settings;
  Injection injection;
  Index documents = 0, seeds = 0;
  Index compressed_layers = 0;  ///< layers that the method compressed in any pass
  Index tokens = 0;             ///< predicted tokens of one seed
  Index key_tokens = 0;         ///< of these, those that need the distant context
  Index answers = 0;            ///< answers of one seed; 0 for tasks without exact match

  DamageRow damage;
  double match_p = NAN, json_p = NAN;                                 ///< McNemar's mid-p
  double nll_equal_p = NAN, match_equal_p = NAN, json_equal_p = NAN;  ///< of the equivalence tests
  double nll_margin = NAN, match_margin = NAN;                        ///< as in EvalRows, of rows with verdicts
  Difference nll_verdict = Difference::not_measured, match_verdict = Difference::not_measured,
             json_verdict = Difference::not_measured;
  std::string verdict_reason;  ///< why the task cannot discriminate

  replay::PerMetric<double> metrics = no_metrics;  ///< means over layers, heads, tokens, documents and seeds
  double drift = NAN;                              ///< of the layer; of rows over all layers: of the last one
  double residual = NAN;                           ///< of the layer; of rows over all layers: mean
  double seconds = 0;                              ///< mean over documents and seeds
  /// As in rows of a replay, by messages of conversations; "" if there are none, or a pass does not know them
  std::string kept_by_span, lost_by_span;

  /// Of the layers in which methods run, how many the method compressed: those with a sliding window, which only some
  /// methods round, do not count, so that rows of all methods are compared.
  Index common_layers() const {
    const Index all = layer_count(settings.layers);
    return all > 0 ? std::min(all, compressed_layers) : compressed_layers;
  }
  bool over_documents() const { return document == "all"; }
  const Estimate& of(Damage figure) const { return damage[index_of(figure)]; }
  Estimate& of(Damage figure) { return damage[index_of(figure)]; }
};

/// Rows by length of the context, task, injection, configuration without seed (in order of first appearance), document,
/// layer, turn.
/// Passes that are not ok give the row their status: a row over documents has status ok where any document is ok, and
/// its reason names the number of the others.
std::vector<EvalRecord> summarize(const EvalResults& results, const EvalRows& rows);

}  // namespace kvbench::eval
