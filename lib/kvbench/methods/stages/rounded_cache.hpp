// SPDX-License-Identifier: Apache-2.0
// Any cache whose entries are stored in fewer bits: a composition A+Q of a method A that chooses or merges tokens and a
// quantiser Q. A quantiser alone is the composition with the cache of all tokens.
//
// The entries of each selection (one, or one per query head or query) are stored in the order of the cache: that of its
// tables, and of their slots. Groups over tokens run over them in this order. Rows that are not encoded yet are exact.
// A cache that drops or merges entries after the prompt is encoded again from what it holds then, since the papers of
// codecs with groups over tokens do not say what happens to a group of which a token is dropped.
#pragma once

#include <memory>
#include <vector>

#include <kvbench/methods/contract/codec.hpp>
#include <kvbench/methods/contract/method.hpp>

namespace kvbench::methods {

/// The cache of this head with its keys and values stored by `codecs`. It must not be of a method of Kind::retrieval,
/// which holds more tokens than it returns (rounded_tier.hpp). `notes` are added to those of the cache.
std::unique_ptr<CompressedCache> rounded_cache(std::unique_ptr<CompressedCache> cache, const HeadPrompt& head,
                                               Codecs codecs, std::vector<Note> notes, Backend& backend);

}  // namespace kvbench::methods
