// SPDX-License-Identifier: Apache-2.0
// Every CUDA runtime call goes through one of these two macros.
#pragma once

#include <cuda_runtime.h>

namespace kvbench::kernels::cuda {

/// Clears the runtime's last error and throws std::runtime_error naming the error, the call, the file and the line.
[[noreturn]] void fail(cudaError_t status, const char* call, const char* file, int line);

}  // namespace kvbench::kernels::cuda

/// Throws where a runtime call fails.
#define KVBENCH_CUDA_CHECK(call)                                                    \
  do {                                                                              \
    if (const cudaError_t kvbench_status = (call); kvbench_status != cudaSuccess) { \
      ::kvbench::kernels::cuda::fail(kvbench_status, #call, __FILE__, __LINE__);    \
    }                                                                               \
  } while (false)

/// For destructors: a failed release is cleared and otherwise ignored (at exit the runtime may be gone already).
#define KVBENCH_CUDA_CHECK_NOEXCEPT(call)                \
  do {                                                   \
    if ((call) != cudaSuccess) (void)cudaGetLastError(); \
  } while (false)
