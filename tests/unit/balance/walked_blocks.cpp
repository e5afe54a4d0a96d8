// SPDX-License-Identifier: Apache-2.0
#include <kvbench/methods/sampling/walked_blocks.hpp>

#include <doctest/doctest.h>

using namespace kvbench;

namespace {

using Ids = std::vector<TokenId>;

WeightedTokens tokens(Index first, Index end) {
  WeightedTokens list;
  list.add_range(first, end);
  return list;
}

/// Even tokens get +1, odd ones -1; a block has as many events as tokens. A token costs 2 flops.
struct Walker {
  std::unique_ptr<Backend> backend = make_ref_backend();
  WalkedBlocks blocks;
  std::vector<Ids> walked;  ///< tokens of each call

  SignedBlocks sign(const WeightedTokens& list, std::vector<std::int32_t> given = {0}) {
    walked.clear();
    return blocks.sign(
        list, 4, given,
        [this](const WeightedTokens& part, const std::vector<std::int32_t>& starts) {
          walked.push_back(part.ids);
          const Index n = std::ssize(part.ids);
          const auto rows = backend->adopt(std::vector<float>(part.ids.size(), 1), n);
          backend->run(kernels::SquaredNorms<Buffer>{.rows = rows, .out = backend->allocate<double>(n)});
          SignedBlocks result;
          for (const TokenId id : part.ids) result.signs.push_back(id % 2 == 0 ? 1 : -1);
          for (std::size_t b = 0; b + 1 < starts.size(); ++b) result.events.push_back(starts[b + 1] - starts[b]);
          return result;
        },
        *backend);
  }
};

}  // namespace

TEST_CASE("blocks that were walked are not walked again, wherever a longer or shorter list has them") {
  Walker walker;
  const SignedBlocks ten = walker.sign(tokens(0, 10));
  CHECK(walker.walked == std::vector<Ids>{{0, 1, 2, 3, 4, 5, 6, 7}, {8, 9}});
  CHECK(ten.signs == std::vector<std::int32_t>{1, -1, 1, -1, 1, -1, 1, -1, 1, -1});
  CHECK(ten.events == std::vector<std::int32_t>{4, 4, 2});
  CHECK(walker.blocks.take_spared().flops == 0);

  const SignedBlocks fifteen = walker.sign(tokens(0, 15));
  CHECK(walker.walked == std::vector<Ids>{{8, 9, 10, 11}, {12, 13, 14}});
  CHECK(fifteen.signs == std::vector<std::int32_t>{1, -1, 1, -1, 1, -1, 1, -1, 1, -1, 1, -1, 1, -1, 1});
  CHECK(fifteen.events == std::vector<std::int32_t>{4, 4, 4, 3});
  CHECK(walker.blocks.take_spared().flops == 2 * 8);

  walker.sign(tokens(4, 12));
  CHECK(walker.walked.empty());
  CHECK(walker.blocks.take_spared().flops == 2 * 8);
}

TEST_CASE("what signs depend on makes another block of the same tokens") {
  Walker walker;
  walker.blocks.start(1);
  walker.sign(tokens(0, 4));
  walker.sign(tokens(0, 4), {1});
  CHECK(walker.walked.size() == 1);  // another round
  WeightedTokens heavy = tokens(0, 4);
  heavy.weights[3] = 2;
  walker.sign(heavy);
  CHECK(walker.walked.size() == 1);
  walker.blocks.start(1);
  walker.sign(tokens(0, 4));
  CHECK(walker.walked.empty());
  walker.blocks.start(2);  // another seed
  walker.sign(tokens(0, 4));
  CHECK(walker.walked.size() == 1);
}
