// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <support/small.hpp>

using namespace kvbench;
using namespace kvbench::methods;
using namespace kvbench::testing;

namespace {

/// Masses 1, 1, 2 and values 1, 2, 4: output 11/4. The query is that of token 2.
struct ThreeTokens {
  std::unique_ptr<Backend> backend = make_ref_backend();
  HeadData head = small_head(logs({1, 1, 2}), 3);
  QueryBlock block = query_block(head, 2, 3, 3, *backend);

  ThreeTokens() {
    block.outputs = backend->adopt(std::vector<float>{2.75f}, 1, 1);
    block.log_sum_exp = backend->adopt(std::vector<float>{std::log(4.0f)}, 1, 1);
  }
  std::unique_ptr<CompressedCache> open(Index budget) {
    return open_cache("oracle-error", {}, prompt_of(head, *backend), budget, 0, *backend);
  }
};

}  // namespace

TEST_CASE("oracle-error keeps the token whose value is nearest to the output, not that of the most mass") {
  ThreeTokens t;
  CHECK(answering(*t.open(1), t.block, t.head, *t.backend) == Ids{1});
}

TEST_CASE("oracle-error weights two tokens so that their answer is exact") {
  ThreeTokens t;
  const auto cache = t.open(2);
  // Values 2 and 4 give 11/4 with shares 5/8 and 3/8.
  CHECK(answering(*cache, t.block, t.head, *t.backend) == Ids{1, 2});
  CHECK(answer(t.head, t.block, cache->entries(t.block), *t.backend)[0] == doctest::Approx(2.75).epsilon(0.01));
}

TEST_CASE("oracle-error keeps all tokens with weight 1 at their number, and counts a weight per token") {
  ThreeTokens t;
  const auto cache = t.open(3);
  const EntryTables tables = cache->entries(t.block);
  CHECK_FALSE(tables[0].weight_num.present());
  CHECK(answering(*cache, t.block, t.head, *t.backend) == Ids{0, 1, 2});
  CHECK(t.open(2)->footprint()[2].rows == 2);
}
