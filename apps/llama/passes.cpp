// SPDX-License-Identifier: Apache-2.0
#include <apps/llama/passes.hpp>

#include <algorithm>
#include <cstdlib>
#include <thread>

#include <unistd.h>

#include <kvbench/core/error.hpp>

#include <apps/common/stop_signals.hpp>

namespace kvbench::llama {

int thread_count(int wanted) {
  return wanted > 0 ? wanted : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

void wait_passively(char** argv) {
  // libgomp reads this once, before main(). Spinning barriers are slow where other processes use the cores: 240 ms per
  // token instead of 20 ms, measured.
  if (std::getenv("OMP_WAIT_POLICY") != nullptr) return;
  setenv("OMP_WAIT_POLICY", "passive", 1);
  execv("/proc/self/exe", argv);  // if this fails, the program is only slower
}

CaptureOptions capture_options(const Model& model, std::vector<int> layers, int threads) {
  return {.layers = std::move(layers),
          .query_heads = model.num_query_heads(),
          .kv_heads = model.num_kv_heads(),
          .rope_scaling = model.metadata("{arch}.rope.scaling.type").value_or(""),
          .threads = threads};
}

void run_batches(Context& context, Capture& capture, std::vector<std::int32_t>& tokens, std::span<const int> batches,
                 const std::function<void(int)>& done) {
  std::int64_t offset = 0;
  for (const int count : batches) {
    capture.begin_batch(offset, count);
    const bool finished = context.decode(tokens, offset, count);
    app::stop_if_requested();
    capture.end_batch();
    if (!finished) throw Error("llama.cpp stopped at token {} without a reason", offset);
    done(count);
    offset += count;
  }
}

}  // namespace kvbench::llama
