// SPDX-License-Identifier: Apache-2.0
#include <stdexcept>
#include <string>

#include "check.hpp"
#include "kernels.hpp"
#include "launch.cuh"

namespace kvbench {

namespace {

using kernels::BufferAccess;
using kernels::DeviceMatrix;
namespace cuda = kernels::cuda;

__global__ void write_words(std::uint32_t* to, Index words, std::uint32_t pattern) {
  for (Index i = cuda::first_index(); i < words; i += cuda::index_stride()) to[i] = pattern;
}

/// Why the current device cannot be used; empty where it can.
std::string reason_unusable() {
  const auto failed = [](cudaError_t status) {
    if (status != cudaSuccess) (void)cudaGetLastError();
    return status != cudaSuccess;
  };
  int devices = 0;
  if (const cudaError_t status = cudaGetDeviceCount(&devices); failed(status)) return cudaGetErrorString(status);
  if (devices == 0) return "no CUDA device found";
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

std::string architecture(int device) {
  int major = 0;
  int minor = 0;
  KVBENCH_CUDA_CHECK(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device));
  KVBENCH_CUDA_CHECK(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device));
  return "sm_" + std::to_string(major) + std::to_string(minor);
}

class CudaBackend final : public Backend {
 public:
  CudaBackend() : isa_(architecture(context_.shared_stream()->device())) {}

  std::string_view device() const override { return "cuda"; }
  std::string_view isa() const override { return isa_; }

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

  void read_bytes(const void* from, std::size_t bytes, void* to) override {
    context_.activate();
    copy(to, from, bytes, cudaMemcpyDeviceToHost);
  }

  void fill_words(void* to, std::size_t words, std::uint32_t pattern) override {
    context_.activate();
    const auto count = static_cast<Index>(words);
    cuda::launch_items(context_, count, write_words, static_cast<std::uint32_t*>(to), count, pattern);
  }

  void execute(const kernels::ExactAttention<Buffer>& op) override { queue(op); }
  void execute(const kernels::WeightedAttention<Buffer>& op) override { queue(op); }
  void execute(const kernels::TopK<Buffer>& op) override { queue(op); }
  void execute(const kernels::GatherRows<Buffer>& op) override { queue(op); }
  void execute(const kernels::SquaredNorms<Buffer>& op) override { queue(op); }
  void execute(const kernels::RotateRows<Buffer>& op) override { queue(op); }
  void execute(const kernels::ColumnSums<Buffer>& op) override { queue(op); }
  void execute(const kernels::SoftmaxRows<Buffer>& op) override { queue(op); }
  void execute(const kernels::PoolRows<Buffer>& op) override { queue(op); }
  void execute(const kernels::ReduceRows<Buffer>& op) override { queue(op); }
  void execute(const kernels::WidenHalf<Buffer>& op) override { queue(op); }
  void execute(const kernels::NarrowHalf<Buffer>& op) override { queue(op); }
  void execute(const kernels::SquaredDistances<Buffer>& op) override { queue(op); }
  void execute(const kernels::KCenter<Buffer>& op) override { queue(op); }
  void execute(const kernels::LeaderClusters<Buffer>& op) override { queue(op); }
  void execute(const kernels::PhiloxFill<Buffer>& op) override { queue(op); }
  void execute(const kernels::NormalizeRows<Buffer>& op) override { queue(op); }
  void execute(const kernels::InnerProducts<Buffer>& op) override { queue(op); }
  void execute(const kernels::BestMatch<Buffer>& op) override { queue(op); }
  void execute(const kernels::MeanRows<Buffer>& op) override { queue(op); }
  void execute(const kernels::PageBounds<Buffer>& op) override { queue(op); }
  void execute(const kernels::SplitSigns<Buffer>& op) override { queue(op); }
  void execute(const kernels::BalanceWalk<Buffer>& op) override { queue(op); }
  void execute(const kernels::SpreadRows<Buffer>& op) override { queue(op); }

 private:
  struct ToDevice {
    template <class T>
    DeviceMatrix<T> operator()(const Buffer<T>& buffer) const {
      return BufferAccess::view<kernels::Space::device>(buffer);
    }
  };

  template <template <template <class> class> class Op>
  void queue(const Op<Buffer>& op) {
    context_.activate();
    cuda::run(kernels::map_views<DeviceMatrix>(op, ToDevice{}), context_);
  }

  void copy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
    KVBENCH_CUDA_CHECK(cudaMemcpyAsync(to, from, bytes, kind, context_.stream()));
    KVBENCH_CUDA_CHECK(cudaStreamSynchronize(context_.stream()));
  }

  cuda::Context context_;
  std::string isa_;
};

}  // namespace

std::unique_ptr<Backend> make_cuda_backend() {
  if (const std::string reason = reason_unusable(); !reason.empty()) {
    throw std::runtime_error("The CUDA backend cannot run here: " + reason + ". Use --device cpu.");
  }
  return std::make_unique<CudaBackend>();
}

bool cuda_available() { return reason_unusable().empty(); }

}  // namespace kvbench
