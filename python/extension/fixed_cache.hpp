// SPDX-License-Identifier: Apache-2.0
// Fixed entries, as make() of a method in Python returned them, to which decoded tokens are added exactly.
#pragma once

#include <memory>

#include <kvbench/methods/contract/method.hpp>

#include <python/extension/answers.hpp>

namespace kvbench::python {

struct FixedEntries {
  Answer answer;
  methods::Protected fixed;
};
/// Of what make() returned for a head: ids, a kvbench.Kept, or tables. With the GIL.
FixedEntries fixed_entries_of(nb::handle made, const methods::HeadPrompt& head);

std::unique_ptr<methods::CompressedCache> fixed_cache(FixedEntries entries, const methods::HeadPrompt& head,
                                                      Backend& backend);

}  // namespace kvbench::python
