// SPDX-License-Identifier: Apache-2.0
// Adapters between methods of single heads and methods of a layer.
#pragma once

#include <memory>
#include <vector>

#include <kvbench/methods/contract/method.hpp>

namespace kvbench::methods {

/// The cache of a layer whose heads have these caches. Their append() must take the same number of tokens.
std::unique_ptr<LayerCache> layer_of(std::vector<std::unique_ptr<CompressedCache>> heads);

/// Makes the cache of a layer from one independent cache per head.
MakeLayerCache each_head(std::vector<MakeCache> heads);

/// Makes the cache of a single head from a layer of one kv head.
MakeCache single_head(MakeLayerCache layer);

}  // namespace kvbench::methods
