// SPDX-License-Identifier: Apache-2.0
// Caches of methods that retrieve, whose full cache is stored in fewer bits: a composition A+Q of a method A of
// Kind::retrieval and a quantiser Q.
//
// A chooses as it does alone, by an index that it makes of exact keys: bounds of pages, centroids, partial keys. The
// tokens from which it chooses are encoded in the order of the context, and decoded ones by the rule of the codec;
// those that A keeps beside the full cache (sinks, tokens that have no cluster yet) stay exact.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <kvbench/methods/contract/codec.hpp>
#include <kvbench/methods/contract/method.hpp>

namespace kvbench::methods {

/// Makes the caches of `make` with their full cache stored by `codecs`, one per head, which may depend on the seed. The
/// caches of a seed share the rows of the prompt. `stores` says how, in a note of the row: "int8: 8 bits".
MakeCaches rounded_tier(MakeCaches make, std::vector<HeadPrompt> heads,
                        std::function<std::vector<Codecs>(std::uint32_t seed)> codecs, std::string stores,
                        Backend& backend);

}  // namespace kvbench::methods
