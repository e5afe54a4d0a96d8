// SPDX-License-Identifier: Apache-2.0
// The arrays that a deployment of a method would hold in memory. The harness sums their bytes.
#pragma once

#include <string>
#include <vector>

#include <kvbench/kernels/view.hpp>

namespace kvbench::methods {

/// Element type of an array; `kv` is that of the deployment's cache (--kv-dtype).
enum class Element { kv, f32, f16, i32, u8 };
/// Bytes of one element; Element::kv counts as `kv`.
constexpr double element_bytes(Element element, Element kv) {
  switch (element) {
    case Element::kv:
      return element_bytes(kv, Element::f16);
    case Element::f32:
    case Element::i32:
      return 4;
    case Element::f16:
      return 2;
    case Element::u8:
      return 1;
  }
  return 0;
}

/// fast: the memory of the device that computes; slow: the memory that holds the full cache of retrieval methods.
enum class Tier { fast, slow };
/// Which part of an array is read per query: all of it, the rows of the entries that answer the query, or nothing.
enum class Read { every_query, with_entry, never };

struct FootprintArray {
  std::string name;
  Element element = Element::kv;
  Index rows = 0;  ///< one row per entry where read = with_entry
  Index cols = 0;
  Tier tier = Tier::fast;
  Read read = Read::every_query;
  bool meta = false;  ///< metadata (weights, counts, ids, centroids, bounds), as opposed to keys and values
};
/// All arrays that one kv head needs to answer its queries.
using Footprint = std::vector<FootprintArray>;

}  // namespace kvbench::methods
