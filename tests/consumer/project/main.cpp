// SPDX-License-Identifier: Apache-2.0
// Example of a user's program: lists the methods of an installed kvbench.
#include <cstdio>

#include <kvbench/methods/registry.hpp>
#include <kvbench/replay/replay.hpp>

int main() {
  for (const kvbench::methods::MethodInfo& method : kvbench::methods::all_methods())
    std::printf("%s\n", method.name.c_str());
  return kvbench::methods::all_methods().empty() ? 1 : 0;
}
