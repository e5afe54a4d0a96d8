// SPDX-License-Identifier: Apache-2.0
#include "compare.hpp"

using namespace kvbench;
using namespace kvbench::test;

TEST_CASE("page bounds equal the reference bit by bit") {
  for (Index n : {0, 1, 15, 16, 17, 100})
    for (Index d : {1, 2, 15, 16, 17, 33, 64, 128})
      for (Index page : {1, 3, 16, 200}) {
        CAPTURE(n);
        CAPTURE(d);
        CAPTURE(page);
        const auto rows = Random().normal(n * d);
        const auto run = [&](Backend& b) {
          const auto out = b.allocate<float>((n + page - 1) / page, 2 * d);
          b.run(kernels::PageBounds<Buffer>{.rows = b.adopt(rows, n, d), .page = page, .out = out});
          return b.read(out);
        };
        const auto expected = run(*make_ref_backend());
        for_each_backend([&](Backend& b) { CHECK(same_bits(run(b), expected)); });
      }
}

TEST_CASE("split signs equal the reference") {
  for (Index m : {0, 1, 5})
    for (Index d : {1, 2, 15, 16, 17, 33, 128}) {
      CAPTURE(m);
      CAPTURE(d);
      const auto rows = Random().lattice(m * d, 1);  // with zeros
      const auto run = [&](Backend& b) {
        const auto out = b.allocate<float>(m, 2 * d);
        b.run(kernels::SplitSigns<Buffer>{.rows = b.adopt(rows, m, d), .out = out});
        return b.read(out);
      };
      const auto expected = run(*make_ref_backend());
      for_each_backend([&](Backend& b) { CHECK(run(b) == expected); });
    }
}
