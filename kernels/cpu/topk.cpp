// SPDX-License-Identifier: Apache-2.0
// Where k is small, a bound from a sample excludes most scores. Radix select on the others: a histogram of the leading
// bits finds the bin of the k-th largest score; only the scores of that bin are counted again, by their next bits,
// until the k-th largest is known exactly. A last pass collects the columns.
#include "simd.hpp"

namespace kvbench::kernels::cpu::KVBENCH_ISA {

namespace {

constexpr int kManyBits = 11;
constexpr int kFewBits = 8;
constexpr Index kManyKeys = 1 << 13;  // from here on bins of more bits pay
constexpr int kBins = 1 << kManyBits;
constexpr int kCopies =
    4;  // neighbouring scores count in different copies, so that equal bins do not wait for each other

/// Signed integers in the order of the floats; -0 equals +0.
inline IntVec ordered(Vec x) {
  const IntVec bits_of = IntVec(x + Vec{});
  return bits_of ^ ((bits_of >> 31) & broadcast(std::int32_t{0x7fffffff}));
}
inline std::uint32_t unsigned_order(std::int32_t key) { return static_cast<std::uint32_t>(key) ^ 0x80000000u; }

struct Threshold {
  std::int32_t key;  // of the k-th largest score
  Index ties;        // how many scores equal to it are taken
};

/// Counts of keys by some of their bits.
struct Histogram {
  std::uint32_t (*counts)[kBins];  // [kCopies]
  int copies = kCopies;            // in use
  int bins = kBins;                // in use, a power of two
};

void count_bins(const std::int32_t* keys, Index n, int shift, Histogram& histogram) {
  histogram.copies = n < 2 * histogram.bins ? 1 : kCopies;  // few keys: clearing and reading the bins dominates
  auto* counts = histogram.counts;
  const auto mask = static_cast<std::uint32_t>(histogram.bins) - 1;
  for (int copy = 0; copy < histogram.copies; ++copy)
    __builtin_memset(counts[copy], 0, sizeof(std::uint32_t) * static_cast<std::size_t>(histogram.bins));
  Index i = 0;
  for (; histogram.copies == kCopies && i + kCopies <= n; i += kCopies)
    for (int copy = 0; copy < kCopies; ++copy) ++counts[copy][unsigned_order(keys[i + copy]) >> shift & mask];
  for (; i < n; ++i) ++counts[0][unsigned_order(keys[i]) >> shift & mask];
}

/// The bin that holds the k-th largest; k becomes its rank inside that bin.
std::uint32_t bin_of_rank(const Histogram& histogram, Index& k) {
  for (int bin = histogram.bins - 1;; --bin) {
    Index in_bin = 0;
    for (int copy = 0; copy < histogram.copies; ++copy) in_bin += histogram.counts[copy][bin];
    if (k <= in_bin) return static_cast<std::uint32_t>(bin);
    k -= in_bin;
  }
}

/// Keeps the keys whose bits from `shift` on equal `prefix`; in place is allowed.
Index keep_prefix(const std::int32_t* keys, Index n, int shift, std::uint32_t prefix, std::int32_t* out) {
  const IntVec wanted = broadcast(static_cast<std::int32_t>((prefix << shift ^ 0x80000000u)) >> shift);
  Index kept = 0;
  Index i = 0;
  for (; i + W <= n; i += W) kept += compress(load(keys + i), bits((load(keys + i) >> shift) == wanted), out + kept);
  for (; i < n; ++i)
    if (unsigned_order(keys[i]) >> shift == prefix) out[kept++] = keys[i];
  return kept;
}

/// 1 <= k <= n. The fewer keys remain, the fewer bits are counted at a time.
Threshold find_threshold(const std::int32_t* keys, Index n, Index k, std::int32_t* candidates, Histogram histogram) {
  std::uint32_t prefix = 0;
  for (int shift = 32; shift > 0;) {
    const int width = static_cast<int>(min(n < kManyKeys ? kFewBits : kManyBits, shift));
    shift -= width;
    histogram.bins = 1 << width;
    count_bins(keys, n, shift, histogram);
    prefix = (shift + width == 32 ? 0 : prefix << width) | bin_of_rank(histogram, k);
    if (shift == 0) break;
    n = keep_prefix(keys, n, shift, prefix, candidates);
    keys = candidates;
    if (n == 1) return {candidates[0], 1};
  }
  return {static_cast<std::int32_t>(prefix ^ 0x80000000u), k};
}

/// Writes the places of the keys that the threshold takes, in increasing order. There is room for n + W places and
/// keys.
void collect(const std::int32_t* keys, Index n, Threshold threshold, std::int32_t* places) {
  const IntVec limit = broadcast(threshold.key);
  for (Index i = 0; i < n; i += W) {
    const std::uint32_t lanes = ~std::uint32_t{0} >> (32 - min(W, n - i));
    const IntVec key = load(keys + i);
    std::uint32_t taken = bits(key > limit) & lanes;
    for (std::uint32_t ties = bits(key == limit) & lanes; ties != 0 && threshold.ties > 0;
         ties &= ties - 1, --threshold.ties)
      taken |= ties & (0 - ties);
    places += compress(lane_numbers(i), taken, places);
  }
}

void make_keys(const float* scores, Index n, std::int32_t* keys) {
  Index i = 0;
  for (; i + W <= n; i += W) store(keys + i, ordered(load(scores + i)));
  for (; i < n; ++i) keys[i] = ordered(broadcast(scores[i]))[0];
}

constexpr Index kSampled = 8;       // one vector in kSampled is in the sample
constexpr Index kWorthASample = 4;  // scores per score selected, at least

/// A key that is probably below the k-th largest of all and above most others, from a sample.
std::int32_t probable_bound(const float* scores, Index n, Index k, std::int32_t* keys, std::int32_t* candidates,
                            Histogram histogram) {
  Index sampled = 0;
  for (Index i = 0; i + W <= n; i += kSampled * W, sampled += W) store(keys + sampled, ordered(load(scores + i)));
  const Index expected = k / kSampled;
  Index spread = 1;
  while (spread * spread < expected) ++spread;
  return find_threshold(keys, sampled, min(sampled, expected + 4 * spread + 16), candidates, histogram).key;
}

/// Keys and columns of all scores from `bound` on; returns how many.
Index list_above(const float* scores, Index n, std::int32_t bound, std::int32_t* keys, std::int32_t* columns) {
  const IntVec limit = broadcast(bound);
  Index count = 0;
  Index i = 0;
  for (; i + W <= n; i += W) {
    const IntVec key = ordered(load(scores + i));
    const std::uint32_t hits = bits(key >= limit);
    compress(key, hits, keys + count);
    count += compress(lane_numbers(i), hits, columns + count);
  }
  for (; i < n; ++i) {
    const std::int32_t key = ordered(broadcast(scores[i]))[0];
    if (key < bound) continue;
    keys[count] = key;
    columns[count++] = static_cast<std::int32_t>(i);
  }
  return count;
}

/// What the selection of one row works with.
struct Scratch {
  std::int32_t* keys;
  std::int32_t* candidates;
  std::int32_t* columns;
  std::int32_t* places;
  Histogram histogram;
};

/// Writes the places of the k largest of n scores to s.places, 1 <= k <= n.
void select(const float* scores, Index n, Index k, const Scratch& s) {
  if (k * kWorthASample <= n && n >= 64 * W) {
    const std::int32_t bound = probable_bound(scores, n, k, s.keys, s.candidates, s.histogram);
    const Index above = list_above(scores, n, bound, s.keys, s.columns);
    if (above >= k) {
      collect(s.keys, above, find_threshold(s.keys, above, k, s.candidates, s.histogram), s.places);
      for (Index i = 0; i < k; ++i) s.places[i] = s.columns[s.places[i]];
      return;
    }
  }
  make_keys(scores, n, s.keys);
  collect(s.keys, n, find_threshold(s.keys, n, k, s.candidates, s.histogram), s.places);
}

}  // namespace

template <>
void run(const TopK<HostMatrix>& op, Context& context) {
  const Index n = op.scores.cols + W;  // compress() writes whole vectors
  const Scratch s = {
      scratch<std::int32_t>(context, 0, n),
      scratch<std::int32_t>(context, 1, n),
      scratch<std::int32_t>(context, 2, n),
      scratch<std::int32_t>(context, 3, n),
      {static_cast<std::uint32_t(*)[kBins]>(context.workspace.get(4, sizeof(std::uint32_t) * kCopies * kBins))}};
  for (Index row = 0; row < op.scores.rows; ++row) {
    const std::int32_t first = op.first.data[row * op.first.stride];
    const Index competing = max(op.last.data[row * op.last.stride] - first, 0);
    const Index k = min(op.ids.cols, competing);
    if (k > 0) select(op.scores.data + row * op.scores.stride + first, competing, k, s);
    std::int32_t* ids = op.ids.data + row * op.ids.stride;
    for (Index i = 0; i < k; ++i) ids[i] = first + s.places[i];
    for (Index i = k; i < op.ids.cols; ++i) ids[i] = -1;
  }
}

}  // namespace kvbench::kernels::cpu::KVBENCH_ISA
