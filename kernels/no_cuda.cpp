// SPDX-License-Identifier: Apache-2.0
#include <stdexcept>

#include <kvbench/kernels/backend.hpp>

namespace kvbench {

std::unique_ptr<Backend> make_cuda_backend() {
  throw std::runtime_error(
      "this build has no CUDA backend: configure with -DKVBENCH_CUDA=ON on a machine with the CUDA toolkit (12 or 13), "
      "or use --device cpu");
}

bool cuda_available() { return false; }

}  // namespace kvbench
