// SPDX-License-Identifier: Apache-2.0
// Where few of many are wanted, a sample gives a bound that leaves little more than those. Among what is left, radix select: a
// histogram of the leading bits finds the bin of the k-th largest score; only that bin's scores are looked at again, by their
// next bits, until the k-th largest is known exactly. One last pass collects the columns.
#include "simd.hpp"

namespace kvbench::kernels::cpu::KVBENCH_ISA {

namespace {

constexpr int kManyBits = 11;
constexpr int kFewBits = 8;
constexpr Index kManyKeys = 1 << 13;  // from which on bins of more bits pay
constexpr int kBins = 1 << kManyBits;
constexpr int kCopies = 4;  // neighbouring scores count in different copies, so that equal bins do not wait for each other

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
  histogram.copies = n < 2 * histogram.bins ? 1 : kCopies;  // few keys: what counts is to clear and to walk over the bins
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

/// 1 <= k <= n. As many leading bits at a time as the number of keys left is worth.
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

/// Writes the places of the keys that the threshold takes, in increasing order, and those of the others to `others`, which may
/// be null. Both have room for n + W places, and so have the keys.
void collect(const std::int32_t* keys, Index n, Threshold threshold, std::int32_t* places, std::int32_t* others) {
  const IntVec limit = broadcast(threshold.key);
  for (Index i = 0; i < n; i += W) {
    const std::uint32_t lanes = ~std::uint32_t{0} >> (32 - min(W, n - i));
    const IntVec key = load(keys + i);
    std::uint32_t taken = bits(key > limit) & lanes;
    for (std::uint32_t ties = bits(key == limit) & lanes; ties != 0 && threshold.ties > 0; ties &= ties - 1, --threshold.ties)
      taken |= ties & (0 - ties);
    places += compress(lane_numbers(i), taken, places);
    if (others != nullptr) others += compress(lane_numbers(i), ~taken & lanes, others);
  }
}

void make_keys(const float* scores, Index n, std::int32_t* keys) {
  Index i = 0;
  for (; i + W <= n; i += W) store(keys + i, ordered(load(scores + i)));
  for (; i < n; ++i) keys[i] = ordered(broadcast(scores[i]))[0];
}

/// The part of a list of candidates, increasing and then -1, that lies in [first, last).
struct Candidates {
  const std::int32_t* columns;
  Index count;
};

Candidates competing(const TopK<HostMatrix>& op, Index row, std::int32_t first, std::int32_t last) {
  const std::int32_t* columns = op.among.data + row * op.among.stride;
  Index begin = 0;
  Index end = op.among.cols;
  while (end > 0 && (columns[end - 1] < 0 || columns[end - 1] >= last)) --end;
  while (begin < end && columns[begin] < first) ++begin;
  return {columns + begin, end - begin};
}

/// Scores of the candidates; `gathered` has room for them.
const float* scores_among(const TopK<HostMatrix>& op, Index row, const Candidates& among, float* gathered) {
  if (op.among_scores.data != nullptr) {
    const Index begin = among.columns - (op.among.data + row * op.among.stride);
    return op.among_scores.data + row * op.among_scores.stride + begin;
  }
  const float* scores = op.scores.data + row * op.scores.stride;
  for (Index i = 0; i < among.count; ++i) gathered[i] = scores[among.columns[i]];
  return gathered;
}

constexpr Index kSampled = 8;       // one vector of so many is in the sample
constexpr Index kWorthASample = 4;  // scores for each one taken

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
  float* gathered;
  std::int32_t* places;
  std::int32_t* others;
  Histogram histogram;
};

/// Leaves the places of the k largest of n scores in s.places, and of the others in s.others where that is asked for.
/// 1 <= k <= n.
void select(const float* scores, Index n, Index k, const Scratch& s, bool with_others) {
  if (k * kWorthASample <= n && n >= 64 * W && !with_others) {
    const std::int32_t bound = probable_bound(scores, n, k, s.keys, s.candidates, s.histogram);
    const Index above = list_above(scores, n, bound, s.keys, s.columns);
    if (above >= k) {
      collect(s.keys, above, find_threshold(s.keys, above, k, s.candidates, s.histogram), s.places, nullptr);
      for (Index i = 0; i < k; ++i) s.places[i] = s.columns[s.places[i]];
      return;
    }
  }
  make_keys(scores, n, s.keys);
  collect(s.keys, n, find_threshold(s.keys, n, k, s.candidates, s.histogram), s.places, with_others ? s.others : nullptr);
}

/// Columns of the first `count` places of a row that competed, -1 after them.
void write_columns(const std::int32_t* places, Index count, const Candidates& among, std::int32_t first, Index cols,
                   std::int32_t* out) {
  for (Index i = 0; i < count; ++i) out[i] = among.columns != nullptr ? among.columns[places[i]] : first + places[i];
  for (Index i = count; i < cols; ++i) out[i] = -1;
}

}  // namespace

template <>
void run(const TopK<HostMatrix>& op, Context& context) {
  const Index n = op.scores.cols + W;  // compress() writes whole vectors
  const Scratch s = {scratch<std::int32_t>(context, 0, n),
                     scratch<std::int32_t>(context, 1, n),
                     scratch<std::int32_t>(context, 2, n),
                     scratch<float>(context, 3, op.among.cols),
                     scratch<std::int32_t>(context, 4, n),
                     scratch<std::int32_t>(context, 5, n),
                     {static_cast<std::uint32_t(*)[kBins]>(context.workspace.get(6, sizeof(std::uint32_t) * kCopies * kBins))}};
  const bool with_rest = op.rest.data != nullptr;
  for (Index row = 0; row < op.scores.rows; ++row) {
    const float* scores = op.scores.data + row * op.scores.stride;
    const std::int32_t first = op.first.data[row * op.first.stride];
    const std::int32_t last = op.last.data[row * op.last.stride];
    const bool listed = op.among.data != nullptr;
    const Candidates among = listed ? competing(op, row, first, last) : Candidates{nullptr, max(last - first, 0)};
    const Index k = min(op.ids.cols, among.count);
    const float* compete = listed ? scores_among(op, row, among, s.gathered) : scores + first;
    if (k > 0) select(compete, among.count, k, s, with_rest);
    for (Index i = 0; i < op.ids.cols && op.best.data != nullptr; ++i)
      op.best.data[row * op.best.stride + i] = i < k ? compete[s.places[i]] : 0;
    write_columns(s.places, k, among, first, op.ids.cols, op.ids.data + row * op.ids.stride);
    if (with_rest)
      write_columns(s.others, k > 0 ? among.count - k : 0, among, first, op.rest.cols, op.rest.data + row * op.rest.stride);
  }
}

}  // namespace kvbench::kernels::cpu::KVBENCH_ISA
