// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <new>
#include <stdexcept>
#include <string>

#include <kvbench/kernels/fields.hpp>

#include "cpu/prefilter/match_state.hpp"
#include "kernels.hpp"

namespace kvbench {

namespace {

/// Finds ref::run or cpu::run by the namespace of the context.
template <class Op, class Context>
void run_in(const Op& op, Context& context) {
  run(op, context);
}

/// What is on the host has arrived.
class HostUploader final : public Uploader {
  std::pair<std::shared_ptr<void>, void*> upload_bytes(std::shared_ptr<void> host, std::size_t) override {
    void* const address = host.get();
    return {std::move(host), address};
  }
};

/// A back end in host memory: operations are run by the kernels of Context's namespace.
template <class Context>
class HostBackend : public Backend {
 public:
  template <class... Options>
  explicit HostBackend(std::string_view device, Options... options) : device_(device), context_{options...} {}

  std::string_view device() const override { return device_; }
  std::string_view isa() const override { return name_of(context_.isa); }
  std::shared_ptr<Uploader> make_uploader() const override { return std::make_shared<HostUploader>(); }

 protected:
  bool in_host_memory() const override { return true; }
  std::shared_ptr<void> allocate_bytes(std::size_t bytes) override {
    constexpr std::align_val_t alignment{64};
    return {::operator new(bytes, alignment), [](void* p) { ::operator delete (p, std::align_val_t{64}); }};
  }
  std::pair<std::shared_ptr<void>, void*> adopt_bytes(std::shared_ptr<void> host, std::size_t) override {
    void* address = host.get();
    return {std::move(host), address};
  }
  void read_bytes(const void* from, std::size_t bytes, void* to) override { std::memcpy(to, from, bytes); }
  void fill_words(void* to, std::size_t words, std::uint32_t pattern) override {
    std::fill_n(static_cast<std::uint32_t*>(to), words, pattern);
  }

  void execute(kernels::Operations::Pointer op) override {
    std::visit([this](const auto* one) { run_in(kernels::views_of<kernels::HostMatrix>(*one), context_); }, op);
  }

 private:
  std::string_view device_;
  Context context_;
};

class CpuBackend final : public HostBackend<kernels::cpu::Context> {
 public:
  CpuBackend(Isa isa, Prefilter prefilter)
      : HostBackend("cpu", isa, prefilter), prefilters_(prefilter != Prefilter::off && prefilter_available(isa)) {}

  std::shared_ptr<kernels::MatchState> make_match_state(Index points, Index columns) override {
    if (!prefilters_) return nullptr;
    const auto memory = allocate<std::byte>(static_cast<Index>(kernels::cpu::match_state_bytes(points, columns)));
    void* const data = kernels::BufferAccess::view<kernels::Space::host>(memory).data;
    return {kernels::cpu::place_match_state(data, points, columns), [memory](kernels::MatchState*) {}};
  }

 private:
  bool prefilters_;
};

}  // namespace

bool isa_available(Isa isa) {
  switch (isa) {
    case Isa::scalar:
      return true;
#if defined(KVBENCH_X86)
    case Isa::avx2:
      return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    case Isa::avx512:
      return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
             __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
#endif
    default:
      return false;
  }
}

bool prefilter_available(Isa isa) {
#if defined(KVBENCH_X86)
  static const bool vnni = __builtin_cpu_supports("avx512vnni");
  return isa == Isa::avx2 || (isa == Isa::avx512 && vnni);
#else
  return false;
#endif
}

Isa best_isa() {
  if (isa_available(Isa::avx512)) return Isa::avx512;
  return isa_available(Isa::avx2) ? Isa::avx2 : Isa::scalar;
}

std::string_view name_of(Isa isa) {
  if (isa == Isa::avx512) return "avx512";
  return isa == Isa::avx2 ? "avx2" : "scalar";
}

std::unique_ptr<Backend> make_ref_backend() {
  return std::make_unique<HostBackend<kernels::ref::Context>>("ref", Isa::scalar);
}

std::unique_ptr<Backend> make_cpu_backend(Isa isa, Prefilter prefilter) {
  if (!isa_available(isa))
    throw std::runtime_error("this processor or this build has no " + std::string(name_of(isa)) +
                             "; the best available is " + std::string(name_of(best_isa())) + " (--isa " +
                             std::string(name_of(best_isa())) + ")");
  return std::make_unique<CpuBackend>(isa, prefilter);
}

}  // namespace kvbench
