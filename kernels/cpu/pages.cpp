// SPDX-License-Identifier: Apache-2.0
#include "simd.hpp"

namespace kvbench::kernels::cpu::KVBENCH_ISA {

template <>
void run(const PageBounds<HostMatrix>& op, Context&) {
  ref::Context reference;
  ref::run(op, reference);
}
template <>
void run(const SplitSigns<HostMatrix>& op, Context&) {
  ref::Context reference;
  ref::run(op, reference);
}

}  // namespace kvbench::kernels::cpu::KVBENCH_ISA
