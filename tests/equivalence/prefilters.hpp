// SPDX-License-Identifier: Apache-2.0
// Every instruction set that has prefilters, without them and with them wherever they can be used.
#pragma once

#include "compare.hpp"

namespace kvbench::test {

/// Calls check(plain, prefiltered), naming the instruction set in messages.
template <class F>
void for_each_prefilter(F check) {
  for (const Isa isa : {Isa::avx2, Isa::avx512}) {
    if (!isa_available(isa) || !prefilter_available(isa)) continue;
    const std::string name(name_of(isa));
    CAPTURE(name);
    check(*make_cpu_backend(isa, Prefilter::off), *make_cpu_backend(isa, Prefilter::always));
  }
}

}  // namespace kvbench::test
