// SPDX-License-Identifier: Apache-2.0
#include "../cuda_module.hpp"

#include "interface.hpp"

extern "C" __attribute__((visibility("default"))) const kvbench::CudaModule kvbench_cuda_module;
const kvbench::CudaModule kvbench_cuda_module = {KVBENCH_INTERFACE, kvbench::make_cuda_backend, kvbench::cuda_unusable};
