// SPDX-License-Identifier: Apache-2.0
// What an evaluation measures, before it is summarised into rows.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <kvbench/eval/answers.hpp>
#include <kvbench/eval/json.hpp>
#include <kvbench/eval/scores.hpp>
#include <kvbench/eval/tasks.hpp>
#include <kvbench/eval/transcripts.hpp>
#include <kvbench/replay/records/results.hpp>

namespace kvbench::replay {
struct ReplayRequest;
}

namespace kvbench::eval {

/// In which layers the outputs of a method replace those of the model.
enum class Inject { all, one, upto, none };
std::string_view name_of(Inject inject);

/// The least share of an error that is injected: the rounding of fp32 logits gives a KL of 3e-12 (SmolLM2-135M), and of
/// a method whose KL is 1e-5 the share 1e-3 leaves 1e-11.
inline constexpr double least_scale = 1e-3;

struct Injection {
  Inject mode = Inject::all;
  std::int64_t layer = -1;  ///< of `one` and `upto` (the last layer injected)
  double scale = 1;         ///< share of the method's error that is injected, above 0
  friend auto operator<=>(const Injection&, const Injection&) = default;
};

/// Metrics of which none applies.
inline const replay::PerMetric<double> no_metrics = [] {
  replay::PerMetric<double> none{};
  none.fill(NAN);
  return none;
}();

/// Errors of one layer: means over its query heads and the scored tokens. NaN where a figure does not apply.
struct LayerErrors {
  std::int64_t layer = 0;
  /// Replay's metrics against exact attention at the current, possibly perturbed, state (the local error).
  replay::PerMetric<double> metrics = no_metrics;
  double drift = NAN;  ///< |h - h_full| / |h_full| of the hidden state after the layer, mean over the scored tokens
  /// |a - a*| / |residual stream|, a: what attention adds to it after W_O and norm; mean over the scored tokens
  double residual = NAN;
};

/// How many kv heads hold the tokens of a context, of the layers that a method compresses.
struct Holders {
  std::vector<Index> of_token;  ///< [tokens]; none holds those behind
  Index heads = 0;
  /// A kv head that holds these tokens.
  void add(const std::vector<Index>& held);
};
/// Of some tokens: the share that a kv head holds, mean, and the share that none holds. NaN where there are none, or no
/// layer was compressed.
struct TokensHeld {
  double kept = NAN, lost = NAN;
};
TokensHeld needles_held(const TaskDocument& document, const Holders& holders);
/// Of each message; empty where no layer was compressed.
std::vector<TokensHeld> messages_held(const TaskDocument& document, const Holders& holders);

/// One pass: the scored tokens of a document through the model, with one configuration and injection.
struct PassResult {
  std::size_t configuration = 0, document = 0;  ///< indices into EvalResults
  Injection injection;
  replay::Status status = replay::Status::ok;
  std::string reason;                         ///< why it is not ok, or notes
  std::vector<TokenScore> tokens;             ///< tokens[i] is the prediction of scored[i + 1]
  std::vector<int> answer;                    ///< of the compressed cache by itself, if documents are continued
  std::optional<Json> json = {};              ///< the line that `answer` ends, if answers are judged as JSON
  std::vector<LayerErrors> layers;            ///< of the layers that the method compressed, ascending
  TokensHeld needles;                         ///< when the last scored token is answered
  std::vector<TokensHeld> messages;           ///< the same, by message; empty: not known
  double budget_tokens = 0, kept_tokens = 0;  ///< means per kv head, as in replay
  replay::Bytes bytes;                        ///< mean per kv head over all layers of the model
  double seconds = 0;                         ///< of the pass of this configuration
};

struct EvalDocument {
  std::size_t task = 0;                     ///< index into EvalResults::tasks
  TaskDocument document;                    ///< if it is continued, the scored tokens are the answer of the full cache
  Index generate = 0;                       ///< Generation::tokens
  std::optional<Json> json = {};            ///< as PassResult::json, of the full cache
  std::vector<ShortScore> without_distant;  ///< as PassResult::tokens; empty: there was no short-context pass
  Index context_tokens = 0;                 ///< of a document at one of several lengths; 0: that of EvalResults
};

struct EvalConfiguration {
  std::string method, params;
  Budget budget;
  bool seeded = false;
  std::uint32_t seed = 0;
  std::string rope_layout = {};  ///< RowIdentity::rope_layout
};

/// What the results of a run depend on beside model, documents and configurations. Rows that differ in it are not
/// compared.
struct EvalSettings {
  /// In which methods run, as layer_ranges(). The others keep their full cache, but those with a sliding window where
  /// the method rounds.
  std::string layers;
  Index model_layers = 0;
  std::string weights;   ///< "f32", or "file": as the model's file has them
  std::string kv_dtype;  ///< element type of the cache
  std::string protect;   ///< "FIRST,LAST", followed by " outside" where not part of the budget
  std::string decoded;   ///< treatment of decoded tokens
  EvalProtocol protocol;
  std::string generate = {};                   ///< Generation::text()
  std::optional<std::uint32_t> document_seed;  ///< absent: documents are given as token ids
};
/// What a request says of them.
EvalSettings settings_of(const replay::ReplayRequest& request);

/// Ascending numbers as "0-2,5".
std::string layer_ranges(const std::vector<std::int64_t>& layers);
/// The number of layers of such ranges. Text that is none counts as no layer.
Index layer_count(const std::string& ranges);

/// SHA-256 of the tokens of a document: the ids in decimal, separated by spaces, context and scored tokens on a line
/// each. Its first 12 digits.
std::string digest_of(const TaskDocument& document);
/// The same of its scored tokens alone.
std::string digest_of_scored(const TaskDocument& document);
/// SHA-256 of such digests, on a line each. Its first 12 digits.
std::string digest_of(const std::vector<std::string>& documents);

struct EvalResults {
  std::string model, model_sha256;  ///< name of the file without its folders, whole digest
  std::string text;                 ///< name of the haystack's file
  Index context_tokens = 0;
  bool question_inside = false, chat = false;
  std::string device, isa;
  EvalSettings settings;
  std::vector<const TaskInfo*> tasks;
  std::vector<EvalDocument> documents;
  std::vector<EvalConfiguration> configurations;
  std::vector<PassResult> passes;  ///< in any order; at most one per configuration, document and injection

  Index length_of(const EvalDocument& document) const {
    return document.context_tokens > 0 ? document.context_tokens : context_tokens;
  }
  /// "outside" or "inside" the compressed context, and "(chat)" where documents are conversations.
  std::string question() const { return std::string(question_inside ? "inside" : "outside") + (chat ? " (chat)" : ""); }
};

/// Sums over predicted tokens, key tokens and answers.
struct PassSums {
  double tokens = 0, kl = 0, tv = 0, same_top = 0, sure = 0, sure_changed = 0, nll_full = 0, nll = 0, nll_short = 0;
  double key_tokens = 0, key_nll_full = 0, key_nll = 0;
  double answers = 0, right_full = 0, right_short = 0, right = 0, harmful = 0, beneficial = 0;
  // Of documents that are continued. alike_N: share of the first N tokens of both answers; asked_N: whether so many
  // were asked for.
  double continued = 0, same = 0, differs = 0, first_differs = 0, length_full = 0, length = 0;
  double alike_32 = 0, asked_32 = 0, alike_64 = 0, asked_64 = 0, alike_256 = 0, asked_256 = 0;
  double repeatable = 0, repetition_full = 0, repetition = 0;
  double needles = 0, needle_kept = 0, needle_lost = 0;       // of documents whose holders of needles are known
  double records = 0, json_full = 0, json = 0, json_cut = 0;  // of documents whose answers are judged as JSON
};
/// The spans of a document; of one turn alone, unless it is 0.
std::span<const ScoredSpan> spans_of(const TaskDocument& document, Index turn);
/// Of a pass that is ok; of the scored tokens of one turn, unless it is 0. Throws Error where it has other tokens than
/// the document.
PassSums sums_of(const TaskInfo& task, const EvalDocument& document, const PassResult& pass, Index turn = 0);

/// Whether each answer is right with the full cache, and with the configuration: every token of it is the most probable
/// one after the true tokens before it, so greedy decoding gives the answer.
struct AnswerMatch {
  bool full = false, compressed = false;
};
std::vector<AnswerMatch> matches_of(const EvalDocument& document, const PassResult& pass);

/// KL of the counted tokens; of one turn, unless it is 0.
std::vector<double> divergences_of(const EvalDocument& document, const PassResult& pass, Index turn = 0);

}  // namespace kvbench::eval
