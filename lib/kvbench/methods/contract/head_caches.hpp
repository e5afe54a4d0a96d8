// SPDX-License-Identifier: Apache-2.0
// Methods of single heads as methods of a layer: the one place where the two are adapted to each other.
#pragma once

#include <memory>
#include <vector>

#include <kvbench/methods/contract/method.hpp>

namespace kvbench {

/// The layer whose heads have these caches. All of them must take the same number of tokens.
std::unique_ptr<LayerCache> layer_of(std::vector<std::unique_ptr<CompressedCache>> heads);

/// Gives each head of a layer a cache of its own.
MakeLayerCache each_head(std::vector<MakeCache> heads);

/// A layer of one kv head as a single head.
MakeCache single_head(MakeLayerCache layer);

}  // namespace kvbench
