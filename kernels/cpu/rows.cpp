// SPDX-License-Identifier: Apache-2.0
#include "simd.hpp"

namespace kvbench::kernels::cpu::KVBENCH_ISA {

namespace {

/// Operations whose time does not matter have one implementation.
template <class Op>
void run_reference(const Op& op) {
  ref::Context reference;
  ref::run(op, reference);
}

/// out[j] += exp(scores[j] - log_sum_exp).
void add_masses(const float* scores, float log_sum_exp, Index n, float* out) {
  const Vec base = broadcast(log_sum_exp);
  Index j = 0;
  for (; j + W <= n; j += W) store(out + j, load(out + j) + exp(load(scores + j) - base));
  for (; j < n; ++j) out[j] += exp(broadcast(scores[j]) - base)[0];
}

/// out[j] = exp(scores[j] - log_sum_exp).
void softmax_row(const float* scores, float log_sum_exp, Index n, float* out) {
  const Vec base = broadcast(log_sum_exp);
  Index j = 0;
  for (; j + W <= n; j += W) store(out + j, exp(load(scores + j) - base));
  for (; j < n; ++j) out[j] = exp(broadcast(scores[j]) - base)[0];
}

#if KVBENCH_WIDTH > 4
void widen_row(const std::uint16_t* in, Index n, Half format, float* out) {
  for (Index c = 0; c < n; c += 8) {
    alignas(16) std::uint16_t tail[8] = {};
    const bool whole = c + 8 <= n;
    if (!whole) __builtin_memcpy(tail, in + c, static_cast<std::size_t>(n - c) * sizeof(*in));
    const __m128i raw = _mm_loadu_si128(reinterpret_cast<const __m128i*>(whole ? in + c : tail));
    const __m256 wide =
        format == Half::f16 ? _mm256_cvtph_ps(raw) : _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(raw), 16));
    alignas(32) float result[8];
    _mm256_storeu_ps(whole ? out + c : result, wide);
    if (!whole) __builtin_memcpy(out + c, result, static_cast<std::size_t>(n - c) * sizeof(*out));
  }
}

__m128i narrow_bf16(__m256 x) {
  const __m256i raw = _mm256_castps_si256(x);
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(raw, 16), _mm256_set1_epi32(1));
  const __m256i rounded = _mm256_add_epi32(raw, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
  const __m256i quiet = _mm256_or_si256(raw, _mm256_set1_epi32(0x400000));
  const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_UNORD_Q));
  const __m256i high = _mm256_srli_epi32(_mm256_blendv_epi8(rounded, quiet, nan), 16);
  return _mm_packus_epi32(_mm256_castsi256_si128(high), _mm256_extracti128_si256(high, 1));
}

void narrow_row(const float* in, Index n, Half format, std::uint16_t* out) {
  for (Index c = 0; c < n; c += 8) {
    alignas(32) float tail[8] = {};
    const bool whole = c + 8 <= n;
    if (!whole) __builtin_memcpy(tail, in + c, static_cast<std::size_t>(n - c) * sizeof(*in));
    const __m256 x = _mm256_loadu_ps(whole ? in + c : tail);
    const __m128i half =
        format == Half::f16 ? _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC) : narrow_bf16(x);
    alignas(16) std::uint16_t result[8];
    _mm_storeu_si128(reinterpret_cast<__m128i*>(whole ? out + c : result), half);
    if (!whole) __builtin_memcpy(out + c, result, static_cast<std::size_t>(n - c) * sizeof(*out));
  }
}
#endif

}  // namespace

template <>
void run(const GatherRows<HostMatrix>& op, Context&) {
  if (op.source.cols == 0) return;
  for (Index i = 0; i < op.ids.rows; ++i)
    __builtin_memcpy(op.out.data + i * op.out.stride, op.source.data + op.ids.data[i] * op.source.stride,
                     static_cast<std::size_t>(op.source.cols) * sizeof(float));
}

template <>
void run(const SquaredNorms<HostMatrix>& op, Context&) {
  for (Index i = 0; i < op.rows.rows; ++i)
    op.out.data[i * op.out.stride] = squared_norm(op.rows.data + i * op.rows.stride, op.rows.cols);
}

template <>
void run(const ColumnSums<HostMatrix>& op, Context&) {
  constexpr Index chunk = 2048;  // sums of a chunk stay in the first-level cache while the rows pass
  const Index m = op.out.rows == 0 ? 0 : op.scores.rows / op.out.rows;
  for (Index g = 0; g < op.out.rows; ++g)
    for (Index begin = 0; begin < op.out.cols; begin += chunk) {
      const Index n = min(chunk, op.out.cols - begin);
      float* out = op.out.data + g * op.out.stride + begin;
      for (Index j = 0; j < n; ++j) out[j] = 0;
      for (Index row = g * m; row < (g + 1) * m; ++row) {
        const float log_sum_exp = op.log_sum_exp.data[row * op.log_sum_exp.stride];
        if (log_sum_exp != -kInfinity) add_masses(op.scores.data + row * op.scores.stride + begin, log_sum_exp, n, out);
      }
    }
}

template <>
void run(const SoftmaxRows<HostMatrix>& op, Context&) {
  for (Index r = 0; r < op.scores.rows; ++r) {
    const float log_sum_exp = op.log_sum_exp.data[r * op.log_sum_exp.stride];
    float* out = op.out.data + r * op.out.stride;
    if (log_sum_exp == -kInfinity)
      for (Index j = 0; j < op.scores.cols; ++j) out[j] = 0;
    else
      softmax_row(op.scores.data + r * op.scores.stride, log_sum_exp, op.scores.cols, out);
    op.norm.data[r * op.norm.stride] = static_cast<float>(__builtin_sqrt(squared_norm(out, op.scores.cols)));
  }
}

template <>
void run(const RotateRows<HostMatrix>& op, Context&) {
  run_reference(op);
}
template <>
void run(const PoolRows<HostMatrix>& op, Context&) {
  run_reference(op);
}
template <>
void run(const ReduceRows<HostMatrix>& op, Context&) {
  run_reference(op);
}

#if KVBENCH_WIDTH > 4
template <>
void run(const WidenHalf<HostMatrix>& op, Context&) {
  for (Index r = 0; r < op.in.rows; ++r)
    widen_row(op.in.data + r * op.in.stride, op.in.cols, op.format, op.out.data + r * op.out.stride);
}
template <>
void run(const NarrowHalf<HostMatrix>& op, Context&) {
  for (Index r = 0; r < op.in.rows; ++r)
    narrow_row(op.in.data + r * op.in.stride, op.in.cols, op.format, op.out.data + r * op.out.stride);
}
#else
template <>
void run(const WidenHalf<HostMatrix>& op, Context&) {
  run_reference(op);
}
template <>
void run(const NarrowHalf<HostMatrix>& op, Context&) {
  run_reference(op);
}
#endif

}  // namespace kvbench::kernels::cpu::KVBENCH_ISA
