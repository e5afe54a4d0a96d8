// SPDX-License-Identifier: Apache-2.0
#include <stdexcept>

#include <kvbench/kernels/backend.hpp>

namespace kvbench {

std::unique_ptr<Backend> make_cuda_backend() {
  throw std::runtime_error("The CUDA backend cannot run here: " + cuda_unusable());
}

std::string cuda_unusable() {
  return "this build has no CUDA (configure with -DKVBENCH_CUDA=ON on a machine with the CUDA toolkit, 12 or 13)";
}

}  // namespace kvbench
