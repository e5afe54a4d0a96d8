// SPDX-License-Identifier: Apache-2.0
// Free generation: how a token follows from logits, and what tells two answers apart. The full and a compressed cache
// continue a context by themselves; an answer is what one of them says, with its end token if it comes to one.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <kvbench/kernels/view.hpp>

namespace kvbench::eval {

/// How documents are continued.
struct Generation {
  Index tokens = 0;        ///< of an answer, at most; 0: documents have scored tokens of their own
  double temperature = 0;  ///< 0: greedy
  std::uint32_t seed = 0;  ///< of the draws

  /// Column `generate`: "64 greedy", "64 at 0.8 seed 3"; empty where there is none.
  std::string text() const;
};
/// Why a row about such a document has no figures.
inline constexpr std::string_view ends_at_once =
    "the full cache ends its answer at once: the first token follows from the context, which no method has compressed, "
    "and is an end token";
/// Throws Error where a field is out of range.
void check(const Generation& generation);

/// The tokens of answers to one context. Full and compressed caches draw with common random numbers: the token at a
/// position follows from the logits, the seed, the context and the position alone.
class NextToken {
 public:
  NextToken(const Generation& generation, std::span<const int> context);

  /// `logits` [vocabulary] of the token at `position` of the answer, from 0. Greedy: the largest one, of equal ones the
  /// lowest id. At a temperature: the first id at which the cumulative probability exceeds a uniform number. Throws
  /// Error where a logit is NaN or +infinity, or none is finite.
  int operator()(std::span<const float> logits, Index position) const;
  /// In [0, 1): the first 52 bits of the SHA-256 of "SEED POSITION\nCONTEXT\n", the context as ids in decimal,
  /// separated by spaces.
  double uniform(Index position) const;

 private:
  Generation generation_;
  std::string context_;
};

/// The first position, from 0, at which two answers differ; a token and the end of the other answer differ, too.
std::optional<Index> first_difference(std::span<const int> a, std::span<const int> b);
/// Share of the first `count` positions at which two answers have the same token. Positions behind the end of both do
/// not count.
double share_alike(std::span<const int> a, std::span<const int> b, Index count);
/// Share of the 4-grams of an answer that occurred in it before: 1 - distinct / all (seq-rep-4, arXiv 1908.04319). NaN
/// for fewer than four tokens.
double repetition(std::span<const int> answer);

}  // namespace kvbench::eval
