// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <support/rounding.hpp>

using namespace kvbench;
using namespace kvbench::methods;
using namespace kvbench::testing;

// Groups of 4. The first: min 1, max 4, step 1 at 2 bits; 1.5 lies between codes 0 and 1, and goes to the even one, 0;
// 2.6 goes to 3. The second is constant.
TEST_CASE("int2 rounds to three steps between minimum and maximum of a group") {
  CHECK(rounded_keys("int2", {{"group", "4"}}, {1, 1.5f, 2.6f, 4, 7, 7, 7, 7}) ==
        std::vector<float>{1, 1, 3, 4, 7, 7, 7, 7});
}

// min -1, max 14, step 1 at 4 bits: 0.5 is 1.5 steps from the minimum, between codes 1 and 2; 2 is even, so that it is
// decoded to -1 + 2. 1.5 is 2.5 steps, and goes to 2 as well.
TEST_CASE("ties of int4 go to the even code") {
  CHECK(rounded_keys("int4", {}, {-1, 0.5f, 1.5f, 14}) == std::vector<float>{-1, 1, 1, 14});
}

TEST_CASE("group=0 takes the whole head vector as one group") {
  const std::vector<float> row = {0, 1, 2, 100, 3, 4, 5, 85};
  CHECK(rounded_keys("int8", {{"group", "0"}}, row) != rounded_keys("int8", {{"group", "4"}}, row));
  // step 100 / 255 in f16 is 0.39208984375: 85 is 216.8 steps, 217 steps are 85.08349609375.
  CHECK(rounded_keys("int8", {{"group", "0"}}, row)[7] == 217 * 0.39208984375f);
}

TEST_CASE("integers are within half a step, and do not change the order of numbers") {
  for (const int bits : {1, 2, 3, 4, 5, 6, 7, 8}) {
    CAPTURE(bits);
    const std::vector<Assignment> settings = {{"bits", std::to_string(bits)}, {"group", "0"}};
    for (std::vector<float> row : hostile_blocks(16)) {
      std::ranges::sort(row);
      const std::vector<float> got = rounded_keys("int", settings, row);
      CHECK(std::ranges::is_sorted(got));
      // Half a step, and what rounding minimum and step to f16 adds: 2^-11 of each, and of 2^bits steps.
      const double range = double{row.back()} - row.front(), most = std::max(-row.front(), row.back());
      const double step = range / ((1 << bits) - 1);
      for (std::size_t i = 0; i < row.size(); ++i)
        CHECK(std::abs(double{got[i]} - row[i]) <= step / 2 + (range + most + step) * 0x1p-11 + 0x1p-24 * (1 << bits));
    }
  }
}
