// SPDX-License-Identifier: Apache-2.0
#include "../kernels.hpp"

namespace kvbench::kernels::cpu::KVBENCH_ISA {

template <>
void run(const PhiloxFill<HostMatrix>& op, Context&) {
  ref::Context reference;
  ref::run(op, reference);
}

}  // namespace kvbench::kernels::cpu::KVBENCH_ISA
