// SPDX-License-Identifier: Apache-2.0
// What follows from the rule by which a codec encodes the rows of a cache: runs of decoded tokens, and bytes.
#pragma once

#include <cstdint>
#include <span>

#include <kvbench/methods/contract/codec.hpp>

namespace kvbench::methods {

/// The longest run of decoded tokens, at most `most`, after which the rows that are encoded answer the query of each.
/// The cache holds `held` rows before, of which `context` came with the prompt. `codec` null: all rows are exact.
Index run_of(const Codec* codec, Index context, Index held, Index most);

/// Adds the arrays that hold an array of the cache when its codec stores it: those of the codec, and the rows that are
/// not encoded yet. `exact` of the rows are still to be found in arrays of this kind; those of this one are taken off.
void add_encoded(const FootprintArray& array, const Codec& codec, Index& exact, Footprint& out);

/// Adds what the codec holds once beside the rows of these tokens, which it has encoded.
void add_extras(const Codec& codec, std::span<const std::int32_t> tokens, Content content, Tier tier, Footprint& out);

}  // namespace kvbench::methods
