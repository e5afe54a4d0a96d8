// SPDX-License-Identifier: Apache-2.0
#include "compare.hpp"

using namespace kvbench;
using namespace kvbench::test;

TEST_CASE("the same random bits everywhere") {
  const auto draw = [](Backend& b, Index k) {
    auto out = b.allocate<std::uint32_t>(k, 4);
    b.run(kernels::PhiloxFill<Buffer>{{{11, 22, 0xfffffff0u, 44}}, {55, 66}, out});
    return b.read(out);
  };
  for (Index k : {0, 1, 31, 1000}) {
    const auto expected = draw(*make_ref_backend(), k);
    for_each_backend([&](Backend& b) { check_equivalent(draw(b, k), expected, "words"); });
  }
}
