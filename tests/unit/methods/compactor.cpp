// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <numeric>

#include <doctest/doctest.h>
#include <Eigen/Dense>

#include <support/small.hpp>

using namespace kvbench;
using namespace kvbench::methods;
using namespace kvbench::testing;

namespace {

using Settings = std::vector<Assignment>;

Settings plain(Settings more, const char* sinks = "0", const char* recent = "0") {
  more.insert(more.end(), {{"sketch", "0"}, {"sinks", sinks}, {"recent", recent}});
  return more;
}

/// Values of length 1, and these keys before RoPE.
HeadData even_head(std::vector<float> keys, Index n, std::vector<float> before) {
  HeadData head = small_head(std::move(keys), n);
  std::ranges::fill(head.values, 1.0f);
  head.pre_rope = std::move(before);
  return head;
}

/// The only head of its layer.
HeadPrompt alone(const HeadData& head) {
  HeadPrompt prompt = prompt_of(head, ref());
  prompt.num_kv_heads = 1;
  return prompt;
}

Ids kept_alone(const Settings& settings, const HeadData& head, Index budget) {
  const auto cache = open_cache("compactor", settings, alone(head), budget, 0);
  return answering(*cache, query_block(head, head.n, head.n + 1, head.n + 1, ref()), head);
}

using Matrix = Eigen::MatrixXd;

Matrix rows_of(const std::vector<float>& numbers, Index first, Index count, Index width) {
  Matrix out(count, width);
  for (Index i = 0; i < count; ++i)
    for (Index c = 0; c < width; ++c) out(i, c) = numbers[static_cast<std::size_t>((first + i) * width + c)];
  return out;
}

Matrix z_scores_of(const Matrix& scores) {
  const double mean = scores.mean(), deviation = std::sqrt((scores.array() - mean).square().mean());
  return (scores.array() - mean) / deviation;
}

/// The rules of the released programs, for tokens first .. first + count - 1 of the heads of a layer: [heads, count].
struct Serial {
  const std::vector<HeadData>& heads;
  Index first, count;

  Matrix attention(Index chunk, bool of_values, Index tile) const {
    Matrix out = Matrix::Zero(std::ssize(heads), count);
    for (Index h = 0; h < out.rows(); ++h) {
      const HeadData& head = heads[static_cast<std::size_t>(h)];
      for (Index begin = 0; begin < count; begin += chunk) {
        const Index size = std::min(chunk, count - begin);
        const Matrix keys = rows_of(head.keys, first + begin, size, head.d);
        for (Index g = 0; g < head.group; ++g) {
          Matrix weights =
              (rows_of(head.queries, g * head.total + first + begin, size, head.d) * keys.transpose()).array().exp();
          weights = weights.array().colwise() / weights.rowwise().sum().array();
          out.row(h).segment(begin, size) += weights.colwise().sum();
        }
        const Index missing = (size + tile - 1) / tile * tile - size;
        out.row(h).segment(begin, size).array() += double(missing * head.group) / double(chunk);
      }
      if (!of_values) continue;
      Eigen::RowVectorXd weighted = Eigen::RowVectorXd::Zero(count + 2);
      for (Index i = 0; i < count; ++i)
        weighted(i + 1) = out(h, i) / double(head.group) * rows_of(head.values, first + i, 1, head.dv).norm();
      for (Index i = 0; i < count; ++i) out(h, i) = weighted.segment(i, 3).sum() / 3;
    }
    return z_scores_of(out);
  }

  Matrix leverage(Index block, double jitter) const {
    Matrix out(std::ssize(heads), count);
    for (Index begin = 0; begin < count; begin += block) {
      const Index size = std::min(block, count - begin);
      for (Index h = 0; h < out.rows(); ++h) {
        const HeadData& head = heads[static_cast<std::size_t>(h)];
        Matrix rows = rows_of(head.pre_rope, first + begin, size, head.d);
        rows.rowwise() -= rows.colwise().mean().eval();
        const Matrix inverse = (rows.transpose() * rows + jitter * Matrix::Identity(head.d, head.d)).inverse();
        out.row(h).segment(begin, size) = (rows * inverse * rows.transpose()).diagonal().transpose();
      }
      out.middleCols(begin, size) = z_scores_of(out.middleCols(begin, size));
    }
    return out;
  }
};

/// The `count` best of the numbers, by place.
Ids best(const std::vector<double>& scores, Index count) {
  Ids order(scores.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, [&](TokenId a, TokenId b) {
    return scores[static_cast<std::size_t>(a)] > scores[static_cast<std::size_t>(b)];
  });
  order.resize(static_cast<std::size_t>(count));
  std::ranges::sort(order);
  return order;
}

struct Layer {
  std::vector<HeadData> heads;
  std::vector<HeadPrompt> prompts;

  Layer(const Shape& shape) {
    for (std::uint32_t h = 0; h < 2; ++h) {
      heads.push_back(random_head(shape, 40 + h, ref()));
      heads.back().head = KvHeadId{h};
      prompts.push_back(prompt_of(heads.back(), ref()));
      prompts.back().num_kv_heads = 2;
    }
  }

  std::vector<Ids> kept(const Settings& settings, Index budget, std::uint32_t seed, Backend& backend) const {
    const MethodInfo& info = find_method("compactor");
    const Caches caches = info.prepare(prompts, info.bind(settings), backend)(budget, seed);
    std::vector<Ids> out;
    for (std::size_t h = 0; h < 2; ++h) {
      const Index n = heads[h].n;
      out.push_back(answering(*caches[h], query_block(heads[h], n, n + 1, n + 1, backend), heads[h], 0, backend));
    }
    return out;
  }
};

}  // namespace

// Blocks of two; every query gives its block the weights 1 3, 1 1 and 4 1: sums .5 1.5 1 1 1.6 .4, and means of three
// neighbours .67 1 1.17 1.2 1 .67.
TEST_CASE("compactor keeps tokens with attention in their block, pooled as in kvpress") {
  const HeadData head = even_head(logs({1, 3, 1, 1, 4, 1, 1}), 6, {0, 0, 0, 3, 0, -3, 0});
  const Settings attention = plain({{"chunk", "2"}, {"blend", "0"}});
  CHECK(kept_alone(attention, head, 1) == Ids{3});
  CHECK(kept_alone(attention, head, 2) == Ids{2, 3});
  CHECK(kept_alone(plain({{"form", "vllm"}, {"chunk", "2"}, {"blend", "0"}}), head, 2) == Ids{1, 4});
  // Token 0 takes no part: 1 | 3 1 and 1 4 of 5 and 5 | 1, sums 1.5 .5 .4 1.6 1, means .67 .8 .83 1 .87.
  CHECK(kept_alone(plain({{"chunk", "2"}, {"blend", "0"}}, "1"), head, 2) == Ids{0, 4});
  // Keys before RoPE 0 0 0 3 0 -3 have leverage 9/18 at 3 and 5.
  CHECK(kept_alone(plain({{"chunk", "2"}, {"blend", "100"}}), head, 2) == Ids{3, 5});
}

// Keys before RoPE 10 -10 10 -10 in one channel and e -e in the other: tokens 0 to 3 have leverage 100 / (400 + j),
// which is 0.25, and tokens 4 and 5 e^2 / (2 e^2 + j). kvpress has j = 0.01: 0.309 with e = 0.09, 0.209 with 0.06. vllm
// has 0.005: 0.295 with 0.06, 0.224 with 0.045.
TEST_CASE("compactor adds to the diagonal what the programs add") {
  const auto keeps_small = [](const char* form, float e) {
    HeadData head = random_head({.n = 6, .decoded = 1, .d = 2, .dv = 1, .group = 1}, 1, ref());
    head.pre_rope = {10, 0, -10, 0, 10, 0, -10, 0, 0, e, 0, -e, 0, 0};
    return kept_alone(plain({{"form", form}, {"blend", "1000"}}), head, 2) == Ids{4, 5};
  };
  CHECK(keeps_small("kvpress", 0.09f));
  CHECK_FALSE(keeps_small("kvpress", 0.06f));
  CHECK(keeps_small("vllm", 0.06f));
  CHECK_FALSE(keeps_small("vllm", 0.045f));
}

// All weights are equal: 1 from each block, of four tokens and of one. A tile lacks 60 queries of the first block and
// 63 of the second, each of which adds 1/4: 16 16 16 16 16.75.
TEST_CASE("compactor of vllm counts the queries that a tile lacks") {
  const HeadData head = even_head({0, 0, 0, 0, 0, 0}, 5, {1, 2, 3, 4, 5, 6});
  const Settings settings = plain({{"form", "vllm"}, {"chunk", "4"}, {"blend", "0"}});
  CHECK(kept_alone(settings, head, 1) == Ids{4});
}

TEST_CASE("compactor keeps what the rule of kvpress keeps, written out serially") {
  const Layer layer({.n = 61, .decoded = 1, .d = 6, .dv = 4, .group = 2});
  const Serial serial{layer.heads, 5, 61 - 5 - 3};
  const Eigen::MatrixXd attention = serial.attention(16, true, 1), leverage = serial.leverage(serial.count, 0.01);
  for (const Index budget : {12, 25, 50}) {
    const auto kept = layer.kept(plain({{"chunk", "16"}}, "5", "3"), budget, 0, ref());
    for (Index h = 0; h < 2; ++h) {
      const Eigen::VectorXd sum = (attention + (1 - double(budget) / 61) * leverage).row(h);
      Ids expected = {0, 1, 2, 3, 4};
      for (const TokenId id : best({sum.begin(), sum.end()}, budget - 8)) expected.push_back(id + 5);
      expected.insert(expected.end(), {58, 59, 60});
      CHECK(kept[static_cast<std::size_t>(h)] == expected);
    }
  }
}

TEST_CASE("compactor keeps what the rule of compactor-vllm keeps, written out serially") {
  const Layer layer({.n = 560, .decoded = 1, .d = 6, .dv = 4, .group = 2});
  const Serial serial{layer.heads, 0, 560};
  const Eigen::MatrixXd sum = serial.attention(24, false, 64) + 0.5 * serial.leverage(512, 0.005);
  for (const Index budget : {12, 90, 300}) {
    const auto kept = layer.kept(plain({{"form", "vllm"}, {"chunk", "24"}}, "2", "3"), budget, 0, ref());
    std::vector<double> open;  // of head 0, then of head 1
    for (Index h = 0; h < 2; ++h)
      for (Index i = 2; i < 557; ++i) open.push_back(sum(h, i));
    std::vector<Ids> expected = {{0, 1}, {0, 1}};
    for (const TokenId place : best(open, 2 * (budget - 5)))
      expected[static_cast<std::size_t>(place / 555)].push_back(2 + place % 555);
    for (Ids& own : expected) own.insert(own.end(), {557, 558, 559});
    CHECK(kept == expected);
    CHECK(kept[0].size() != kept[1].size());  // the heads compete
  }
}

TEST_CASE("compactor says what a trace lacks") {
  HeadData head = small_head({0, 0, 0, 0}, 3);
  CHECK_THROWS_WITH_AS(open_cache("compactor", {}, alone(head), 2, 0)->footprint(),
                       "compactor needs keys before RoPE, and there are neither these nor an unscaled RoPE; replay a "
                       "trace that has them (--pre-rope)",
                       Unavailable);
  head.pre_rope = head.keys;
  HeadPrompt prompt = alone(head);
  prompt.observed_positions = {1, 2};
  prompt.observed = prompt.observed.slice(0, 2);
  CHECK_THROWS_WITH_AS(open_cache("compactor", {}, prompt, 2, 0),
                       "compactor needs the queries of the whole context, and there are 2 of these 3; replay a "
                       "trace that has them all (--queries all)",
                       Unavailable);
  prompt = prompt_of(head, ref());
  prompt.num_kv_heads = 2;
  CHECK_THROWS_WITH_AS(open_cache("compactor", {}, prompt, 2, 0),
                       "compactor compares the tokens of all 2 kv heads of a layer, and has 1 of them; omit --heads",
                       Unavailable);
}
