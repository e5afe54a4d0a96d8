// SPDX-License-Identifier: Apache-2.0
// The caches of a method in Python.
#pragma once

#include <vector>

#include <kvbench/methods/contract/info.hpp>

#include <python/extension/python_object.hpp>

namespace kvbench::python {

/// Makes the caches of `maker`, an object with make(budget, seed), for these heads: one, or with `whole_layer` all
/// heads of a layer, for which make() returns one cache of lists, or a list of results.
methods::MakeCaches cache_maker(Held maker, methods::Kind kind, bool whole_layer,
                                std::vector<methods::HeadPrompt> heads, Backend& backend);

}  // namespace kvbench::python
