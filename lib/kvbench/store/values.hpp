// SPDX-License-Identifier: Apache-2.0
// Values of results that several kinds of stored records have.
#pragma once

#include <kvbench/replay/records/results.hpp>
#include <kvbench/store/archive.hpp>

namespace kvbench::store {

template <class A>
void visit(A& archive, replay::Bytes& v) {
  archive(v.kv, v.meta, v.fast, v.slow, v.read, v.full);
}

}  // namespace kvbench::store
