// SPDX-License-Identifier: Apache-2.0
#include <stdexcept>
#include <string>

#include <kvbench/kernels/fields.hpp>

#include "check.hpp"
#include "kernels.hpp"
#include "launch.cuh"
#include "uploader.hpp"

namespace kvbench {

namespace {

using kernels::DeviceMatrix;
namespace cuda = kernels::cuda;

__global__ void write_words(std::uint32_t* to, Index words, std::uint32_t pattern) {
  for (Index i = cuda::first_index(); i < words; i += cuda::index_stride()) to[i] = pattern;
}

/// 13000 -> "13.0"
std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

/// Why the current device cannot be used; empty where it can.
std::string reason_unusable() {
  const auto failed = [](cudaError_t status) {
    if (status != cudaSuccess) (void)cudaGetLastError();
    return status != cudaSuccess;
  };
  int devices = 0;
  int driver = 0;
  if (failed(cudaDriverGetVersion(&driver)) || driver == 0) return "no NVIDIA driver is installed";
  const cudaError_t counted = cudaGetDeviceCount(&devices);
  if (counted == cudaErrorNoDevice || (counted == cudaSuccess && devices == 0)) return "the driver finds no NVIDIA GPU";
  if (counted == cudaErrorInsufficientDriver) {
    return "the NVIDIA driver supports CUDA " + version_text(driver) + ", this build needs " +
           version_text(CUDART_VERSION);
  }
  if (failed(counted)) return cudaGetErrorString(counted);
  int device = 0;
  if (const cudaError_t status = cudaGetDevice(&device); failed(status)) return cudaGetErrorString(status);
  int pools = 0;
  int cooperative = 0;
  if (failed(cudaDeviceGetAttribute(&pools, cudaDevAttrMemoryPoolsSupported, device)) || pools == 0) {
    return "the device has no memory pools (cudaMallocAsync)";
  }
  if (failed(cudaDeviceGetAttribute(&cooperative, cudaDevAttrCooperativeLaunch, device)) || cooperative == 0) {
    return "the device has no cooperative launch";
  }
  cudaFuncAttributes attributes = {};
  if (const cudaError_t status = cudaFuncGetAttributes(&attributes, write_words); failed(status)) {
    return std::string("this build has no code for the device (configure with -DCMAKE_CUDA_ARCHITECTURES=native): ") +
           cudaGetErrorString(status);
  }
  return {};
}

std::string model_of(int device) {
  cudaDeviceProp properties = {};
  KVBENCH_CUDA_CHECK(cudaGetDeviceProperties(&properties, device));
  return properties.name;
}

std::string architecture(int device) {
  int major = 0;
  int minor = 0;
  KVBENCH_CUDA_CHECK(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device));
  KVBENCH_CUDA_CHECK(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device));
  return "sm_" + std::to_string(major) + std::to_string(minor);
}

class CudaBackend final : public Backend {
 public:
  CudaBackend() : isa_(architecture(number())), name_("cuda (" + model_of(number()) + ")") {}

  std::string_view device() const override { return "cuda"; }
  std::string name() const override { return name_; }
  std::string_view isa() const override { return isa_; }
  std::optional<DeviceMemory> memory() const override { return cuda::memory_of(number()); }
  std::shared_ptr<Uploader> make_uploader() const override { return std::make_shared<cuda::PinnedUploader>(number()); }

 protected:
  bool in_host_memory() const override { return false; }
  std::shared_ptr<void> allocate_bytes(std::size_t bytes) override {
    context_.activate();
    return cuda::allocate(context_.shared_stream(), bytes);
  }

  /// The host copy is released on return, so the transfer must be over by then.
  std::pair<std::shared_ptr<void>, void*> adopt_bytes(std::shared_ptr<void> host, std::size_t bytes) override {
    std::shared_ptr<void> storage = allocate_bytes(bytes);
    if (bytes > 0) copy(storage.get(), host.get(), bytes, cudaMemcpyHostToDevice);
    void* const address = storage.get();
    return {std::move(storage), address};
  }

  void receive(const std::shared_ptr<void>& storage) override { cuda::hand_over(storage, context_.shared_stream()); }

  void read_bytes(const void* from, std::size_t bytes, void* to) override {
    context_.activate();
    copy(to, from, bytes, cudaMemcpyDeviceToHost);
  }

  void fill_words(void* to, std::size_t words, std::uint32_t pattern) override {
    context_.activate();
    const auto count = static_cast<Index>(words);
    cuda::launch_items(context_, count, write_words, static_cast<std::uint32_t*>(to), count, pattern);
  }

  void execute(kernels::Operations::Pointer op) override {
    context_.activate();
    std::visit([this](const auto* one) { cuda::run(kernels::views_of<DeviceMatrix>(*one), context_); }, op);
  }

 private:
  void copy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
    KVBENCH_CUDA_CHECK(cudaMemcpyAsync(to, from, bytes, kind, context_.stream()));
    KVBENCH_CUDA_CHECK(cudaStreamSynchronize(context_.stream()));
  }

  int number() const { return context_.shared_stream()->device(); }

  cuda::Context context_;
  std::string isa_, name_;
};

}  // namespace

std::unique_ptr<Backend> make_cuda_backend() {
  if (const std::string reason = reason_unusable(); !reason.empty()) {
    throw std::runtime_error("The CUDA backend cannot run here: " + reason);
  }
  return std::make_unique<CudaBackend>();
}

std::string cuda_unusable() { return reason_unusable(); }

}  // namespace kvbench
