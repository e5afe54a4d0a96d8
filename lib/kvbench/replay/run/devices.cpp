// SPDX-License-Identifier: Apache-2.0
#include <kvbench/replay/run/devices.hpp>

#include <fmt/format.h>

#include <kvbench/core/error.hpp>
#include <kvbench/core/parallel_for.hpp>

namespace kvbench::replay {

DeviceChoice choose_device(const std::string& requested) {
  if (requested != "cuda" && requested != "auto") return {requested, ""};
  const std::string reason = cuda_unusable();
  if (reason.empty()) return {"cuda", ""};
  if (requested == "cuda")
    throw Error("`backend` is cuda, which cannot be used: {}; set `backend` to cpu, or to auto for the best available",
                reason);
  return {"cpu", fmt::format("`backend` is auto, and cuda cannot be used: {}; computing on the processor", reason)};
}

std::unique_ptr<Backend> make_backend(const RunOptions& options) {
  if (options.backend == "ref") return make_ref_backend();
  if (options.backend == "cuda") return make_cuda_backend();
  return make_cpu_backend(options.isa.value_or(best_isa()));
}

std::size_t thread_count(const RunOptions& options) {
  return allowed_threads(options.threads == 0 && options.backend == "cuda" ? 1 : options.threads);
}

}  // namespace kvbench::replay
