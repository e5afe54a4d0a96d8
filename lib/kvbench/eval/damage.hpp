// SPDX-License-Identifier: Apache-2.0
// The table of figures of the damage to the output of the model. Rows of evaluations, their columns, comparisons of
// documents and documentation follow from it; docs/add-a-damage-figure.md adds a row.
#pragma once

#include <array>
#include <cmath>
#include <string_view>
#include <variant>

#include <kvbench/eval/results.hpp>
#include <kvbench/replay/metrics/info.hpp>

namespace kvbench::eval {

/// An estimate with its 95 % interval over documents (and seeds): log_normal_interval() of figures that are at least
/// zero without an upper limit, otherwise a bootstrap. NaN where it does not apply, and for the interval of fewer than
/// two documents.
struct Estimate {
  double mean = NAN, lo = NAN, hi = NAN;
};

/// The sum of `sum` over the documents and seeds of a row, divided by that of `count`; NaN where nothing is counted.
struct MeanOf {
  double (*sum)(const PassSums&);
  double PassSums::*count;
  bool needs_short = false;  ///< whether every document needs scores with a short context
};
/// A quantile of KL over the scored tokens.
struct KlQuantile {
  double share;
};
/// The exponential of another figure, which stands before this one, and of its interval.
struct ExpOf {
  std::string_view column;
};

using replay::Better;
namespace limits = replay::limits;

/// Where a figure applies.
namespace applies {
inline constexpr std::string_view every_document = "every document",
                                  answers = "documents with answers, of tasks with exact match",
                                  key_tokens = "documents with key tokens",
                                  sure_tokens = "documents with tokens of which the full cache is sure",
                                  continued = "documents that are continued (generate)",
                                  differing = "documents that are continued (generate) whose answers differ",
                                  asked_32 = "documents that are continued by up to 32 tokens or more",
                                  asked_64 = "documents that are continued by up to 64 tokens or more",
                                  asked_256 = "documents that are continued by up to 256 tokens or more",
                                  needles = "documents with statements of answers, of methods whose entries are tokens",
                                  records = "documents whose free answers are judged as JSON",
                                  repeatable = "documents whose answers both have four tokens or more";
}  // namespace applies

/// A row: what the figure says, and what computes it.
struct DamageFigure {
  replay::MetricInfo info;  ///< its name is that of the column
  std::variant<MeanOf, KlQuantile, ExpOf> value;
  bool interval = false;              ///< whether it has the columns NAME_lo and NAME_hi
  std::string_view compared_as = "";  ///< `compare --metric`, where documents are compared by it

  constexpr bool everywhere() const { return info.applies == applies::every_document; }
  /// At least zero without an upper limit: documents spread as log-normal values do.
  constexpr bool is_positive() const { return info.limits.lo == 0 && info.limits.hi > 1; }
  /// What comparisons say of it.
  constexpr replay::MetricInfo compared() const {
    return {compared_as, info.meaning, info.better, info.limits, info.applies};
  }
};
inline constexpr bool with_interval = true, without_interval = false;

/// In the order of the columns. The first one is the default of comparisons.
inline constexpr auto damage_figures = std::to_array<DamageFigure>({
    {{"kl_mean", "KL(full || compressed) of the next token, mean over the scored tokens, nats", Better::smaller,
      limits::at_least_zero, applies::every_document},
     MeanOf{[](const PassSums& s) { return s.kl; }, &PassSums::tokens},
     with_interval,
     "kl"},
    {{"kl_p99", "99 % quantile of KL over the scored tokens", Better::smaller, limits::at_least_zero,
      applies::every_document},
     KlQuantile{0.99}},
    {{"top1", "share of scored tokens whose most probable token is the one of the full cache", Better::larger,
      limits::share, applies::every_document},
     MeanOf{[](const PassSums& s) { return s.same_top; }, &PassSums::tokens},
     with_interval,
     "top1"},
    {{"tv",
      "total variation of the next token, half the sum of |p_full - p_compressed|, mean over the scored tokens; "
      "speculative decoding with one of the two as the draft accepts a share of 1 - tv",
      Better::smaller, limits::share, applies::every_document},
     MeanOf{[](const PassSums& s) { return s.tv; }, &PassSums::tokens},
     with_interval,
     "tv"},
    {{"sure_changed",
      "share of the scored tokens of which the full cache is sure (probability 0.9 and more) whose most probable token "
      "is another one",
      Better::smaller, limits::share, applies::sure_tokens},
     MeanOf{[](const PassSums& s) { return s.sure_changed; }, &PassSums::sure},
     with_interval,
     "sure_changed"},
    {{"nll_full", "negative log-likelihood of the true tokens with the full cache, mean, nats", Better::smaller,
      limits::at_least_zero, applies::every_document},
     MeanOf{[](const PassSums& s) { return s.nll_full; }, &PassSums::tokens}},
    {{"nll", "negative log-likelihood of the true tokens with the compressed cache, mean, nats", Better::smaller,
      limits::at_least_zero, applies::every_document},
     MeanOf{[](const PassSums& s) { return s.nll; }, &PassSums::tokens}},
    {{"nll_diff", "nll - nll_full", Better::smaller, limits::any_sign, applies::every_document},
     MeanOf{[](const PassSums& s) { return s.nll - s.nll_full; }, &PassSums::tokens},
     with_interval,
     "nll"},
    {{"ppl_ratio", "perplexity of the compressed cache / of the full one, exp(nll_diff)", Better::smaller,
      limits::at_least_zero, applies::every_document},
     ExpOf{"nll_diff"},
     with_interval},
    {{"key_nll_full", "nll_full of the key tokens", Better::smaller, limits::at_least_zero, applies::key_tokens},
     MeanOf{[](const PassSums& s) { return s.key_nll_full; }, &PassSums::key_tokens}},
    {{"key_nll", "nll of the key tokens; its exponential is the key-token perplexity (LongPPL)", Better::smaller,
      limits::at_least_zero, applies::key_tokens},
     MeanOf{[](const PassSums& s) { return s.key_nll; }, &PassSums::key_tokens},
     without_interval,
     "key_nll"},
    {{"key_nll_diff", "key_nll - key_nll_full", Better::smaller, limits::any_sign, applies::key_tokens},
     MeanOf{[](const PassSums& s) { return s.key_nll - s.key_nll_full; }, &PassSums::key_tokens},
     with_interval},
    {{"match_full", "match with the full cache", Better::larger, limits::share, applies::answers},
     MeanOf{[](const PassSums& s) { return s.right_full; }, &PassSums::answers}},
    {{"match_short", "match with a short context, the end of the full one", Better::larger, limits::share,
      applies::answers},
     MeanOf{[](const PassSums& s) { return s.right_short; }, &PassSums::answers, true}},
    {{"match", "exact match: share of answers all of whose tokens are the most probable ones", Better::larger,
      limits::share, applies::answers},
     MeanOf{[](const PassSums& s) { return s.right; }, &PassSums::answers},
     without_interval,
     "match"},
    {{"match_diff", "match - match_full", Better::larger, limits::any_sign, applies::answers},
     MeanOf{[](const PassSums& s) { return s.right - s.right_full; }, &PassSums::answers},
     with_interval},
    {{"harmful", "share of answers that only the full cache has right", Better::smaller, limits::share,
      applies::answers},
     MeanOf{[](const PassSums& s) { return s.harmful; }, &PassSums::answers}},
    {{"beneficial", "share of answers that only the compressed cache has right", Better::larger, limits::share,
      applies::answers},
     MeanOf{[](const PassSums& s) { return s.beneficial; }, &PassSums::answers}},
    {{"needle_kept",
      "share of the tokens of the statements of the answers that a kv head still holds, mean over the kv heads of the "
      "layers that the method compressed",
      Better::larger, limits::share, applies::needles},
     MeanOf{[](const PassSums& s) { return s.needle_kept; }, &PassSums::needles},
     with_interval,
     "needle_kept"},
    {{"needle_lost", "share of these tokens that none of these kv heads holds", Better::smaller, limits::share,
      applies::needles},
     MeanOf{[](const PassSums& s) { return s.needle_lost; }, &PassSums::needles},
     with_interval},
    {{"same_answer", "share of documents whose answer, by free generation, is that of the full cache to the last token",
      Better::larger, limits::share, applies::continued},
     MeanOf{[](const PassSums& s) { return s.same; }, &PassSums::continued},
     with_interval,
     "same_answer"},
    {{"first_differs",
      "first token of the answer, from 0, that is not that of the full cache's answer; mean over the documents whose "
      "answers differ",
      Better::larger, limits::at_least_zero, applies::differing},
     MeanOf{[](const PassSums& s) { return s.first_differs; }, &PassSums::differs},
     with_interval},
    {{"alike_32", "share of the first 32 tokens of the answer that the full cache's answer has at the same place",
      Better::larger, limits::share, applies::asked_32},
     MeanOf{[](const PassSums& s) { return s.alike_32; }, &PassSums::asked_32},
     with_interval,
     "alike_32"},
    {{"alike_64", "share of the first 64 tokens of the answer that the full cache's answer has at the same place",
      Better::larger, limits::share, applies::asked_64},
     MeanOf{[](const PassSums& s) { return s.alike_64; }, &PassSums::asked_64},
     with_interval,
     "alike_64"},
    {{"alike_256", "share of the first 256 tokens of the answer that the full cache's answer has at the same place",
      Better::larger, limits::share, applies::asked_256},
     MeanOf{[](const PassSums& s) { return s.alike_256; }, &PassSums::asked_256},
     with_interval,
     "alike_256"},
    {{"answer_tokens_full", "tokens of the full cache's answer, with its end token, if it has one", Better::larger,
      limits::at_least_zero, applies::continued},
     MeanOf{[](const PassSums& s) { return s.length_full; }, &PassSums::continued}},
    {{"answer_tokens", "tokens of the answer of the compressed cache", Better::larger, limits::at_least_zero,
      applies::continued},
     MeanOf{[](const PassSums& s) { return s.length; }, &PassSums::continued}},
    {{"repetition_full", "repetition of the full cache's answer", Better::smaller, limits::share, applies::repeatable},
     MeanOf{[](const PassSums& s) { return s.repetition_full; }, &PassSums::repeatable}},
    {{"repetition", "share of the 4-grams of the answer that occurred in it before, 1 - distinct / all (seq-rep-4)",
      Better::smaller, limits::share, applies::repeatable},
     MeanOf{[](const PassSums& s) { return s.repetition; }, &PassSums::repeatable}},
    {{"repetition_diff", "repetition - repetition_full", Better::smaller, limits::any_sign, applies::repeatable},
     MeanOf{[](const PassSums& s) { return s.repetition - s.repetition_full; }, &PassSums::repeatable},
     with_interval,
     "repetition"},
    {{"json_full", "share of documents whose line is valid JSON with the full cache's answer", Better::larger,
      limits::share, applies::records},
     MeanOf{[](const PassSums& s) { return s.json_full; }, &PassSums::records}},
    {{"json",
      "share of documents whose last line of the context, with the free answer up to its line end, is valid JSON",
      Better::larger, limits::share, applies::records},
     MeanOf{[](const PassSums& s) { return s.json; }, &PassSums::records},
     with_interval,
     "json"},
    {{"json_cut", "share of documents whose line is the beginning of valid JSON when the answer has all its tokens",
      Better::smaller, limits::share, applies::records},
     MeanOf{[](const PassSums& s) { return s.json_cut; }, &PassSums::records}},
});
inline constexpr std::size_t damage_count = damage_figures.size();

/// A row of the table, by its number.
enum class Damage : int {};

constexpr std::size_t index_of(Damage figure) { return static_cast<std::size_t>(figure); }

/// The figure that the code names by its column. A column that the table lacks does not compile.
consteval Damage damage(std::string_view column) {
  for (std::size_t f = 0; f < damage_count; ++f) {
    if (damage_figures[f].info.name == column) return static_cast<Damage>(f);
  }
  throw "no such figure of damage";
}
constexpr const DamageFigure& figure_of(Damage figure) { return damage_figures[index_of(figure)]; }

/// The figures of a row; NaN where one does not apply.
using DamageRow = std::array<Estimate, damage_count>;

}  // namespace kvbench::eval
