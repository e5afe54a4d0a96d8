// SPDX-License-Identifier: Apache-2.0
// Radix select: a histogram of the leading 11 bits finds the bin of the k-th largest score; only that bin's scores are looked
// at again, 11 and then 10 bits at a time, until the k-th largest is known exactly. One last pass collects the columns.
#include "simd.hpp"

namespace kvbench::kernels::cpu::KVBENCH_ISA {

namespace {

constexpr int kBins = 1 << 11;
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

void count_bins(const std::int32_t* keys, Index n, int shift, std::uint32_t (*histogram)[kBins]) {
  __builtin_memset(histogram, 0, sizeof(std::uint32_t) * kCopies * kBins);
  Index i = 0;
  for (; i + kCopies <= n; i += kCopies)
    for (int copy = 0; copy < kCopies; ++copy) ++histogram[copy][unsigned_order(keys[i + copy]) >> shift & (kBins - 1)];
  for (; i < n; ++i) ++histogram[0][unsigned_order(keys[i]) >> shift & (kBins - 1)];
}

/// The bin that holds the k-th largest; k becomes its rank inside that bin.
std::uint32_t bin_of_rank(const std::uint32_t (*histogram)[kBins], int bins, Index& k) {
  for (int bin = bins - 1;; --bin) {
    Index in_bin = 0;
    for (int copy = 0; copy < kCopies; ++copy) in_bin += histogram[copy][bin];
    if (k <= in_bin) return static_cast<std::uint32_t>(bin);
    k -= in_bin;
  }
}

/// Keeps the keys whose bits from `shift` on equal `prefix`; in place is allowed.
Index compress(const std::int32_t* keys, Index n, int shift, std::uint32_t prefix, std::int32_t* out) {
  const IntVec wanted = broadcast(static_cast<std::int32_t>((prefix << shift ^ 0x80000000u)) >> shift);
  Index kept = 0;
  Index i = 0;
  for (; i + W <= n; i += W)
    for (std::uint32_t hits = bits((load(keys + i) >> shift) == wanted); hits != 0; hits &= hits - 1)
      out[kept++] = keys[i + __builtin_ctz(hits)];
  for (; i < n; ++i)
    if (unsigned_order(keys[i]) >> shift == prefix) out[kept++] = keys[i];
  return kept;
}

/// 1 <= k <= n.
Threshold find_threshold(const std::int32_t* keys, Index n, Index k, std::int32_t* candidates,
                         std::uint32_t (*histogram)[kBins]) {
  count_bins(keys, n, 21, histogram);
  std::uint32_t prefix = bin_of_rank(histogram, kBins, k);
  n = compress(keys, n, 21, prefix, candidates);
  count_bins(candidates, n, 10, histogram);
  prefix = prefix << 11 | bin_of_rank(histogram, kBins, k);
  n = compress(candidates, n, 10, prefix, candidates);
  // The remaining 10 bits; the higher ones are equal by now, so 11 bits may be counted.
  count_bins(candidates, n, 0, histogram);
  const std::uint32_t low = bin_of_rank(histogram, kBins, k) & 1023u;
  return {static_cast<std::int32_t>((prefix << 10 | low) ^ 0x80000000u), k};
}

/// Writes the columns at or above the threshold, in increasing order, and returns how many.
Index collect(const std::int32_t* keys, Index n, Threshold threshold, std::int32_t offset, std::int32_t* ids) {
  const IntVec limit = broadcast(threshold.key);
  Index count = 0;
  const auto take = [&](Index i) {
    if (keys[i] == threshold.key && threshold.ties-- <= 0) return;
    ids[count++] = offset + static_cast<std::int32_t>(i);
  };
  Index i = 0;
  for (; i + W <= n; i += W)
    for (std::uint32_t hits = bits(load(keys + i) >= limit); hits != 0; hits &= hits - 1) take(i + __builtin_ctz(hits));
  for (; i < n; ++i)
    if (keys[i] >= threshold.key) take(i);
  return count;
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

}  // namespace

template <>
void run(const TopK<HostMatrix>& op, Context& context) {
  auto* keys = scratch<std::int32_t>(context, 0, op.scores.cols);
  auto* candidates = scratch<std::int32_t>(context, 1, op.scores.cols);
  auto* gathered = scratch<float>(context, 3, op.among.cols);
  auto* histogram = static_cast<std::uint32_t(*)[kBins]>(context.workspace.get(2, sizeof(std::uint32_t) * kCopies * kBins));
  for (Index row = 0; row < op.scores.rows; ++row) {
    const float* scores = op.scores.data + row * op.scores.stride;
    const std::int32_t first = op.first.data[row * op.first.stride];
    const std::int32_t last = op.last.data[row * op.last.stride];
    const bool listed = op.among.data != nullptr;
    const Candidates among = listed ? competing(op, row, first, last) : Candidates{nullptr, max(last - first, 0)};
    const Index n = among.count;
    const Index k = min(op.ids.cols, n);
    std::int32_t* ids = op.ids.data + row * op.ids.stride;
    Index count = 0;
    if (k > 0) {
      for (Index i = 0; i < n && listed; ++i) gathered[i] = scores[among.columns[i]];
      make_keys(listed ? gathered : scores + first, n, keys);
      count = collect(keys, n, find_threshold(keys, n, k, candidates, histogram), listed ? 0 : first, ids);
      for (Index i = 0; i < count && listed; ++i) ids[i] = among.columns[ids[i]];
    }
    for (; count < op.ids.cols; ++count) ids[count] = -1;
  }
}

}  // namespace kvbench::kernels::cpu::KVBENCH_ISA
