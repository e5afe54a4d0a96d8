// SPDX-License-Identifier: Apache-2.0
// The CUDA back end is a module of its own, loaded when it is first asked for: a program without it needs no CUDA
// compiler.
#include "cuda_module.hpp"

#include <cstring>
#include <stdexcept>

#include <dlfcn.h>

#include "interface.hpp"

namespace kvbench {
namespace {

struct Loaded {
  const CudaModule* module = nullptr;
  std::string fault;  ///< why there is none, as a clause
};

Loaded load() {
  const std::string remedy = "; `make build` builds it where the CUDA toolkit, 12 or 13, is installed";
  void* const library = dlopen("libkvbench_cuda.so", RTLD_NOW | RTLD_LOCAL);  // stays loaded
  if (library == nullptr)
    return {nullptr, std::string("the CUDA module cannot be loaded (") + dlerror() + ")" + remedy};
  const auto* module = static_cast<const CudaModule*>(dlsym(library, "kvbench_cuda_module"));
  if (module == nullptr || std::strcmp(module->interface, KVBENCH_INTERFACE) != 0) {
    return {nullptr, "the CUDA module, libkvbench_cuda.so, belongs to another version of kvbench" + remedy};
  }
  return {module, ""};
}

const Loaded& loaded() {
  static const Loaded once = load();
  return once;
}

}  // namespace

std::unique_ptr<Backend> make_cuda_backend() {
  if (loaded().module == nullptr) throw std::runtime_error("The CUDA backend cannot run here: " + loaded().fault);
  return loaded().module->make_backend();
}

std::string cuda_unusable() { return loaded().module == nullptr ? loaded().fault : loaded().module->unusable(); }

}  // namespace kvbench
