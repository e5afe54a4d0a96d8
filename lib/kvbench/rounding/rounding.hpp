// SPDX-License-Identifier: Apache-2.0
// What rounding the keys of a trace does to its attention, format by format: which layers need more bits, and why.
// docs/key-biases.md.
#pragma once

#include <atomic>
#include <cmath>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <kvbench/kernels/backend.hpp>
#include <kvbench/methods/contract/params.hpp>
#include <kvbench/replay/plan/plan.hpp>
#include <kvbench/trace/reader.hpp>

namespace kvbench::rounding {

/// A channel is an outlier where its largest absolute value is more than so many times that of the median channel.
inline constexpr double outlier_factor = 5;
/// A format keeps a head where rounding its keys moves at most this share of its attention to other tokens.
inline constexpr double most_moved = 0.25;

/// What makes the keys of a kv head hard to round.
struct KeyShape {
  /// |m| / root mean square of |k - m| over the tokens, with the mean key m; infinite where all keys are equal, not 0
  double constant = 0;
  Index channel = 0;            ///< with the largest |m|
  double mean = 0;              ///< m of this channel
  std::vector<Index> outliers;  ///< channels, increasing; see outlier_factor
};
/// keys: [n, d], n >= 1. Sums are in fp64.
KeyShape shape_of(std::span<const float> keys, Index d);

/// By what numbers share a scale: the channels of one token, in blocks; the same after a rotation of the channels; the
/// tokens of one channel. centred: by token, of the keys less their mean. The mean adds one number to all logits of a
/// query, so that attention does not need it: what moves less without it was moved by it.
enum class Family { by_token, rotated, by_channel, centred };
std::string_view name_of(Family family);

/// A quantiser of the registry at its only level.
struct KeyFormat {
  Family family;
  std::string method;
  std::vector<methods::Assignment> settings = {};
  std::string name() const;  ///< "q4_0", "q4_0[hadamard=true]"
};
/// By family, and there from the most to the fewest bits.
std::span<const KeyFormat> key_formats();

/// What a format does to the keys of a head.
struct Rounded {
  double bits =
      NAN;  ///< that a number of the keys takes, with its share of the scales; NaN where the format is refused
  /// Share of the attention that moves to other tokens: half of the sum of |p - p'| over the tokens that a query sees,
  /// with its softmax rows p by the keys and p' by the rounded keys; mean over the recorded queries that see at least
  /// two tokens, of all query heads of the kv head. 1 where rounded keys or their logits are not finite. NaN: unknown,
  /// for the reason.
  double moved = NAN;
  std::string reason = "";
};

struct HeadRounding {
  std::string prompt, name;
  std::int64_t layer = 0;
  Index kv_head = 0;
  Index queries = 0;             ///< behind `moved`, of all query heads together
  KeyShape keys;                 ///< of all tokens
  std::vector<Rounded> formats;  ///< as key_formats()

  /// Bits of the cheapest format of a family that keeps the head, as all formats of the family with more bits do;
  /// infinite where none does, NaN where it is unknown of one of these.
  double needed_bits(Family family) const;
  /// The result of a format, which key_formats() has.
  const Rounded& of(Family family, std::string_view method) const;
  /// The most that a format by token moves; NaN where one of them is unknown.
  double most_by_token() const;
};

/// Measures one kv head on all its tokens and recorded queries, with the window and the softcap of its layer. Throws
/// Error as Reader::read_head() and check_logits() do, Interrupted where `stop` is set.
HeadRounding measure_head(const trace::Reader& reader, const replay::HeadPlace& place, Backend& backend,
                          const std::atomic<bool>* stop = nullptr);

/// The heads by most_by_token(), the largest first; those of which it is unknown last.
std::vector<HeadRounding> worst_first(std::vector<HeadRounding> heads);

}  // namespace kvbench::rounding
