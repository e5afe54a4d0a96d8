// SPDX-License-Identifier: Apache-2.0
#include "compare.hpp"

using namespace kvbench;
using namespace kvbench::test;

TEST_CASE("rows handed on equal the reference") {
  const std::vector<std::int32_t> sources = {0, 1, 2, 5, 6, 9, 17, 30, 38, 39};
  const auto result = [&](Backend& b, const std::vector<float>& rows, Index c, Index count) {
    auto out = b.adopt(rows, 40, c);
    b.run(kernels::SpreadRows<Buffer>{b.adopt(sources, std::ssize(sources)), count, 0.25f, out});
    return b.read(out);
  };
  for (Index c : {0, 1, 3, 7, 8, 9, 15, 16, 17, 33, 64, 128}) {
    for (Index count : {0, 1, 4, 16, 100}) {
      const auto rows = Random().normal(40 * c);
      const auto expected = result(*make_ref_backend(), rows, c, count);
      for_each_backend(
          [&](Backend& backend) { check_equivalent(result(backend, rows, c, count), expected, "rows handed on"); });
    }
  }
}
