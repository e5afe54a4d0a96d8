// SPDX-License-Identifier: Apache-2.0
// Any cache whose entries are stored in fewer bits: a composition A+Q of a method A that chooses or merges tokens and a
// quantiser Q. A quantiser alone is the composition with the cache of all tokens.
//
// The entries of each selection (one, or one per query head or query) are stored in the order of the cache: that of its
// tables, and of their slots. Groups over tokens run over them in this order. Rows that are not encoded yet are exact.
// A cache that drops or merges entries after the prompt is encoded again from what it holds then, since the papers of
// codecs with groups over tokens do not say what happens to a group of which a token is dropped.
//
// Beside it caches of methods that retrieve, whose full cache is stored in fewer bits: a composition A+Q of a method A
// of Kind::retrieval and a quantiser Q.
//
// A chooses as it does alone, by an index that it makes of exact keys: bounds of pages, centroids, partial keys. The
// tokens from which it chooses are encoded in the order of the context, and decoded ones by the rule of the codec;
// those that A keeps beside the full cache (sinks, tokens that have no cluster yet) stay exact.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <kvbench/methods/contract/codec.hpp>
#include <kvbench/methods/contract/method.hpp>

namespace kvbench::methods {

/// The cache of this head with its keys and values stored by `codecs`. It must not be of a method of Kind::retrieval,
/// which holds more tokens than it returns (rounded_tier()). `notes` are added to those of the cache.
std::unique_ptr<CompressedCache> rounded_cache(std::unique_ptr<CompressedCache> cache, const HeadPrompt& head,
                                               Codecs codecs, std::vector<Note> notes, Backend& backend);

/// Makes the caches of `make` with their full cache stored by `codecs`, one per head, which may depend on the seed. The
/// caches of a seed share the rows of the prompt. `stores` says how, in a note of the row: "int8: 8 bits".
MakeCaches rounded_tier(MakeCaches make, std::vector<HeadPrompt> heads,
                        std::function<std::vector<Codecs>(std::uint32_t seed)> codecs, std::string stores,
                        Backend& backend);

}  // namespace kvbench::methods
