// SPDX-License-Identifier: Apache-2.0
// What the CUDA module, libkvbench_cuda.so, exports under the name kvbench_cuda_module.
#pragma once

#include <memory>
#include <string>

#include <kvbench/kernels/backend.hpp>

namespace kvbench {

struct CudaModule {
  /// digest of the headers that it was compiled with; the other members may be used only if it matches
  const char* interface;
  std::unique_ptr<Backend> (*make_backend)();
  std::string (*unusable)();
};

}  // namespace kvbench
