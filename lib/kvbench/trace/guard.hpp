// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

namespace kvbench::trace {

/// Runs `look` in a child process first, where it may do no harm. HDF5 1.10 reads and writes out of bounds on some hostile
/// metadata; whoever dies of it is the child. Throws Error naming `path` where the child is killed or takes more than a minute;
/// what `look` throws is ignored, because it will be thrown again here. Nothing is done where no child can be made.
void look_first(const std::string& path, const std::function<void()>& look);

}  // namespace kvbench::trace
