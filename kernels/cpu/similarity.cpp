// SPDX-License-Identifier: Apache-2.0
#include "simd.hpp"

namespace kvbench::kernels::cpu::KVBENCH_ISA {

template <>
void run(const NormalizeRows<HostMatrix>& op, Context&) {
  ref::Context reference;
  ref::run(op, reference);
}
template <>
void run(const InnerProducts<HostMatrix>& op, Context&) {
  ref::Context reference;
  ref::run(op, reference);
}
template <>
void run(const BestMatch<HostMatrix>& op, Context&) {
  ref::Context reference;
  ref::run(op, reference);
}
template <>
void run(const MeanRows<HostMatrix>& op, Context&) {
  ref::Context reference;
  ref::run(op, reference);
}

}  // namespace kvbench::kernels::cpu::KVBENCH_ISA
