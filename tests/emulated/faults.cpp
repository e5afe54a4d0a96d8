// SPDX-License-Identifier: Apache-2.0
// The emulation reports the faults that it is made to find, and correct kernels pass.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

#include <doctest/doctest.h>

#include <kvbench/kernels/backend.hpp>

#include "device.hpp"
#include "planted.hpp"

using planted::kThreads;
using Kernel = void (*)(float*, bool);

namespace {

/// A stream of one device, and memory for 3 blocks allocated on it.
struct Lane {
  explicit Lane(int device = 0) {
    cudaSetDevice(device);
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    void* data = nullptr;
    cudaMallocAsync(&data, sizeof(float) * count, stream);
    out = static_cast<float*>(data);
  }
  ~Lane() {
    emulated::forget_fault();
    if (out != nullptr) cudaFreeAsync(out, stream);
    cudaStreamDestroy(stream);
    cudaSetDevice(0);
    emulated::forget_fault();
  }
  template <class... Arguments>
  cudaError_t launch(void (*kernel)(Arguments...), unsigned blocks, std::type_identity_t<Arguments>... arguments) {
    cudaLaunchAttribute cooperative = {cudaLaunchAttributeCooperative, {1}};
    const bool together = reinterpret_cast<void*>(kernel) == reinterpret_cast<void*>(planted::count_blocks);
    const cudaLaunchConfig_t config = {dim3(blocks), dim3(kThreads), 0, stream, &cooperative, together ? 1u : 0u};
    return cudaLaunchKernelEx(&config, kernel, arguments...);
  }
  /// Runs the queued work; empty where that failed.
  std::vector<float> read() {
    std::vector<float> values(count, -1);
    cudaMemcpyAsync(values.data(), out, sizeof(float) * count, cudaMemcpyDeviceToHost, stream);
    return cudaStreamSynchronize(stream) == cudaSuccess ? values : std::vector<float>{};
  }

  static constexpr std::size_t count = 3 * kThreads;
  cudaStream_t stream = nullptr;
  float* out = nullptr;
};

std::vector<float> result_of(Kernel kernel, bool faulty, int device) {
  Lane lane(device);
  lane.launch(kernel, 3, lane.out, faulty);
  return lane.read();
}

bool same(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

/// Without the fault, the kernel passes on every device; with it, each device reports a fault of that kernel with one
/// of these texts.
void check_reported(Kernel kernel, const std::string& name, std::vector<std::string> texts) {
  for (int device = 0; device < emulated::devices; ++device) {
    CAPTURE(device);
    CHECK(result_of(kernel, false, device).size() == Lane::count);
    Lane lane(device);
    CHECK(lane.launch(kernel, 3, lane.out, true) == cudaSuccess);  // it is queued
    CHECK(lane.read().empty());
    const std::string fault = emulated::fault();
    CAPTURE(fault);
    CHECK(contains(fault, "planted::" + name));
    CHECK(std::any_of(texts.begin(), texts.end(), [&](const std::string& text) { return contains(fault, text); }));
    CHECK(cudaGetErrorString(cudaStreamSynchronize(lane.stream)) == fault);
  }
}

}  // namespace

TEST_CASE("a missing barrier shows as a difference between orders") {
  const std::vector<float> right = result_of(planted::neighbours, false, 0);
  CHECK(right[0] == 1);
  CHECK(right[kThreads - 1] == 0);
  for (int device = 1; device < emulated::devices; ++device) {
    CHECK(same(result_of(planted::neighbours, false, device), right));
    CHECK_FALSE(same(result_of(planted::neighbours, true, device), result_of(planted::neighbours, true, 0)));
  }
}

TEST_CASE("shared memory holds NaN when a block begins, whatever earlier blocks wrote") {
  for (int device = 0; device < emulated::devices; ++device) {
    const std::vector<float> right = result_of(planted::fill_in_turn, false, device);
    CHECK(right[2 * kThreads] == 1);
    CHECK(right[2 * kThreads + 1] == 2);
    const std::vector<float> wrong = result_of(planted::fill_in_turn, true, device);
    CHECK(wrong[1] == 2);
    CHECK(std::isnan(wrong[kThreads + 1]));
    CHECK(std::isnan(wrong[2 * kThreads + 1]));
  }
}

TEST_CASE("deadlocks and divergent synchronisation are reported") {
  check_reported(planted::two_barriers, "two_barriers", {"different barriers"});
  check_reported(planted::early_leave, "early_leave", {"wait for threads that never arrive"});
  check_reported(planted::absent_lanes, "absent_lanes", {"which has exited", "wait for threads that never arrive"});
  check_reported(planted::two_masks, "two_masks", {"different calls", "wait for threads that never arrive"});
}

TEST_CASE("a message names kernel, lines and threads") {
  Lane lane;
  lane.launch(planted::early_leave, 1u, lane.out, true);
  lane.read();
  // early_leave waits in line 39 of planted.cu.
  CHECK(emulated::fault() ==
        "planted::early_leave(float*, bool): threads wait for threads that never arrive; block (0, 0, 0): thread 0 at "
        "planted.cu:39; block (0, 0, 0): thread 5 has exited");
}

TEST_CASE("writes before and after an allocation are reported") {
  check_reported(planted::write_before, "write_before", {"written outside of device memory: at byte -4 of 768"});
  Lane lane;
  lane.launch(planted::neighbours, 4u, lane.out, false);  // memory of 3 blocks
  CHECK(lane.read().empty());
  CHECK(contains(emulated::fault(), "at byte 768 of 768"));
}

TEST_CASE("memory holds NaN before it is written; writes after a free are reported") {
  Lane lane;
  for (const float x : lane.read()) CHECK(std::isnan(x));
  cudaFreeAsync(lane.out, lane.stream);
  lane.launch(planted::neighbours, 3u, lane.out, false);
  CHECK(cudaStreamSynchronize(lane.stream) == cudaSuccess);
  emulated::check_memory();
  CHECK(contains(emulated::fault(), "written to device memory after it was freed"));
  lane.out = nullptr;
}

TEST_CASE("memory is not yet allocated for another stream") {
  Lane lane, other;
  other.launch(planted::neighbours, 3u, lane.out, false);
  CHECK(cudaStreamSynchronize(other.stream) == cudaSuccess);
  for (const float x : lane.read()) CHECK(std::isnan(x));
}

TEST_CASE("nothing runs before the host waits") {
  Lane lane;
  std::vector<float> host(Lane::count, -1);
  lane.launch(planted::neighbours, 3u, lane.out, false);
  cudaMemcpyAsync(host.data(), lane.out, sizeof(float) * host.size(), cudaMemcpyDeviceToHost, lane.stream);
  cudaEvent_t event = nullptr;
  cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
  cudaEventRecord(event, lane.stream);
  CHECK(host[0] == -1);
  CHECK(cudaEventSynchronize(event) == cudaSuccess);
  CHECK(host[0] == 1);
  cudaEventDestroy(event);
}

TEST_CASE("copies in the wrong direction, or too long, are reported") {
  float host[4] = {};
  const auto copy = [&](auto to, auto from, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t stream,
                        const char* text) {
    CHECK(cudaMemcpyAsync(to, from, bytes, kind, stream) == cudaErrorLaunchFailure);
    CHECK(contains(emulated::fault(), text));
    emulated::forget_fault();
  };
  Lane lane;
  float* const out = lane.out;
  copy(host, host, 16, cudaMemcpyHostToDevice, lane.stream, "the target of a copy is not allocated device memory");
  copy(host, host, 16, cudaMemcpyDeviceToHost, lane.stream, "the source of a copy is not allocated device memory");
  copy(out, out, 16, cudaMemcpyHostToDevice, lane.stream, "not host memory");
  copy(out + Lane::count - 1, host, 16, cudaMemcpyHostToDevice, lane.stream,
       "reaches beyond its device memory: 780 of 768");
}

TEST_CASE("blocks of a cooperative launch run together, each with its own shared memory") {
  for (int device = 0; device < emulated::devices; ++device) {
    Lane lane(device), counter(device);
    const unsigned zero = 0;
    cudaMemcpyAsync(counter.out, &zero, sizeof zero, cudaMemcpyHostToDevice, counter.stream);
    cudaStreamSynchronize(counter.stream);
    auto* count = reinterpret_cast<unsigned*>(counter.out);
    CHECK(lane.launch(planted::count_blocks, 3u, lane.out, count) == cudaSuccess);
    CHECK(lane.read() == std::vector<float>(Lane::count, 3));
    CHECK(lane.launch(planted::count_blocks, 5u, lane.out, count) == cudaErrorCooperativeLaunchTooLarge);
  }
}

TEST_CASE("the back end reports held memory, and when memory is exhausted") {
  constexpr std::size_t mib = std::size_t{1} << 20;
  const auto backend = kvbench::make_cuda_backend();
  CHECK(backend->name() == "cuda (emulated on the processor, threads forward)");
  CHECK(backend->isa() == "sm_00");
  const std::size_t before = backend->memory()->held;
  emulated::limit_memory(before + 8 * mib);
  {
    const auto half = backend->allocate<float>(1 << 20);
    CHECK(backend->memory()->held == before + 4 * mib);
    CHECK(backend->memory()->limit == before + 8 * mib);
    try {
      backend->allocate<float>((1 << 20) + 1);
      FAIL("more than the limit was allocated");
    } catch (const kvbench::OutOfDeviceMemory& fault) {
      CHECK(fault.asked() == 4 * mib + 4);
      CHECK(fault.memory().held == before + 4 * mib);
      CHECK(contains(fault.what(), "4 MiB asked for, 4 MiB held, of 8 MiB"));
    }
    CHECK_NOTHROW(backend->allocate<float>(1 << 20));
  }
  CHECK(backend->memory()->held == before);
  CHECK(backend->memory()->peak >= before + 8 * mib);
  emulated::limit_memory(2048 * mib);
}
