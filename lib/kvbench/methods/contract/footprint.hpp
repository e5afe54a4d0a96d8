// SPDX-License-Identifier: Apache-2.0
// The arrays that a deployment of a method would hold in memory. The harness sums their bytes.
#pragma once

#include <string>
#include <vector>

#include <kvbench/kernels/view.hpp>

namespace kvbench::methods {

/// Element type of an array; `kv` is that of the deployment's cache (--kv-dtype), b1 to b7 are codes of so many bits,
/// packed without gaps.
enum class Element { kv, f32, f16, i32, u8, b1, b2, b3, b4, b5, b6, b7 };
/// Codes of 1 to 8 bits.
constexpr Element packed(int bits) {
  return bits == 8 ? Element::u8 : static_cast<Element>(static_cast<int>(Element::b1) + bits - 1);
}
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
    default:
      return (static_cast<int>(element) - static_cast<int>(Element::b1) + 1) / 8.0;
  }
}

/// fast: the memory of the device that computes; slow: the memory that holds the full cache of retrieval methods.
enum class Tier { fast, slow };
/// Metadata are weights, counts, ids, centroids and bounds. Scales of codes count as the keys or values they decode.
enum class Content { keys, values, meta };
/// Which part of an array is read per query: all of it, the rows of the entries that answer the query (Place), or
/// nothing.
enum class Read { every_query, with_entry, with_estimate, never };

struct FootprintArray {
  std::string name;
  Element element = Element::kv;
  Index rows = 0;  ///< one row per entry where read = with_entry
  Index cols = 0;
  Tier tier = Tier::fast;
  Read read = Read::every_query;
  Content content = Content::keys;
  double share = 1;  ///< part of a query's entries that lie in this array, where read = with_entry
  double extra = 0;  ///< rows that a query reads beside those of its entries or estimates, over all query heads

  bool meta() const { return content == Content::meta; }
};
/// All arrays that one kv head needs to answer its queries.
using Footprint = std::vector<FootprintArray>;

}  // namespace kvbench::methods
