/* SPDX-License-Identifier: Apache-2.0 */
/* A CUDA module that was compiled with other headers than the program that loads it: kernels/cuda_module.hpp. */
const struct {
  const char* interface;
} kvbench_cuda_module = {"of another version"};
