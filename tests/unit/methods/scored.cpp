// SPDX-License-Identifier: Apache-2.0
// Score-only methods of one expression.
#include <doctest/doctest.h>

#include <support/small.hpp>

using namespace kvbench;
using namespace kvbench::methods;
using namespace kvbench::testing;

// Norms 3 1 2 0.5 4 1: the shortest is 3, then 1 and 5, of which the lower token comes first, then 2.
TEST_CASE("knorm keeps the shortest keys") {
  const auto backend = make_ref_backend();
  const HeadData head = small_head({3, -1, 2, 0.5f, -4, 1, 0}, 6);
  CHECK(kept_tokens("knorm", {}, head, 1, *backend) == Ids{3});
  CHECK(kept_tokens("knorm", {}, head, 2, *backend) == Ids{1, 3});
  CHECK(kept_tokens("knorm", {}, head, 3, *backend) == Ids{1, 3, 5});
  CHECK(kept_tokens("knorm", {{"sinks", "1"}}, head, 2, *backend) == Ids{0, 3});
  CHECK(kept_tokens("knorm", {{"recent", "2"}}, head, 3, *backend) == Ids{3, 4, 5});  // 4 is the longest, and recent
}
