// SPDX-License-Identifier: Apache-2.0
#include "probes.hpp"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <numeric>
#include <stdexcept>
#include <vector>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace kvbench::bench {

namespace {

constexpr int kChains = 12;  // more than latency times throughput of any processor so far, and they fit 16 registers
constexpr int kSteps = 2'000'000;

template <class F>
double best_seconds(int repeats, F f) {
  double best = 1e30;
  for (int i = 0; i < repeats; ++i) {
    const double start = thread_seconds();
    f();
    best = std::min(best, thread_seconds() - start);
  }
  return best;
}

float multiply_add_scalar() {
  float x[kChains] = {};
  for (int i = 0; i < kSteps; ++i)
    for (float& value : x) value = value * 0.999f + 1e-3f;
  return std::accumulate(x, x + kChains, 0.0f);
}

#if defined(__x86_64__)
__attribute__((target("avx2,fma"))) float multiply_add_avx2() {
  __m256 x[kChains];
  for (__m256& value : x) value = _mm256_set1_ps(1);
  const __m256 a = _mm256_set1_ps(0.999f), b = _mm256_set1_ps(1e-3f);
  for (int i = 0; i < kSteps; ++i)
#pragma GCC unroll 12
    for (int c = 0; c < kChains; ++c) x[c] = _mm256_fmadd_ps(x[c], a, b);
  float total = 0;
  for (const __m256& value : x) total += _mm256_cvtss_f32(value);
  return total;
}

__attribute__((target("avx512f"))) float multiply_add_avx512() {
  __m512 x[kChains];
  for (__m512& value : x) value = _mm512_set1_ps(1);
  const __m512 a = _mm512_set1_ps(0.999f), b = _mm512_set1_ps(1e-3f);
  for (int i = 0; i < kSteps; ++i)
#pragma GCC unroll 12
    for (int c = 0; c < kChains; ++c) x[c] = _mm512_fmadd_ps(x[c], a, b);
  float total = 0;
  for (const __m512& value : x) total += _mm512_cvtss_f32(value);
  return total;
}
#endif

}  // namespace

double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double wall_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double probe_flops(Isa isa) {
  volatile float sink = 0;
  double lanes = 1;
  float (*kernel)() = multiply_add_scalar;
#if defined(__x86_64__)
  if (isa == Isa::avx2) kernel = multiply_add_avx2, lanes = 8;
  if (isa == Isa::avx512) kernel = multiply_add_avx512, lanes = 16;
  if (isa == Isa::scalar) lanes = 1;
#endif
  return 2.0 * lanes * kChains * kSteps / best_seconds(5, [&] { sink = kernel(); });
}

double probe_bandwidth() {
  const std::vector<std::uint64_t> data(std::size_t{32} << 20, 1);
  volatile std::uint64_t sink = 0;
  return static_cast<double>(data.size() * sizeof(data[0])) /
         best_seconds(3, [&] { sink = std::accumulate(data.begin(), data.end(), std::uint64_t{0}); });
}

#if !defined(KVBENCH_WITH_CUDA)
Ceilings probe_device() { throw std::runtime_error("this build has no CUDA"); }
#endif

}  // namespace kvbench::bench
