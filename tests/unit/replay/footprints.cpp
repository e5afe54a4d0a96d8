// SPDX-License-Identifier: Apache-2.0
// The bytes of each method of the registry, recomputed from n, d, the budget and its parameters.
#include <map>

#include <doctest/doctest.h>

#include <kvbench/replay/measure/bytes.hpp>

#include <support/backends.hpp>
#include <support/rows.hpp>
#include <support/temp_folder.hpp>

using namespace kvbench;
using namespace kvbench::methods;
using namespace kvbench::replay;
using namespace kvbench::testing;

namespace {

constexpr Shape shape{.n = 96, .decoded = 8, .d = 8, .dv = 6, .group = 3};
constexpr double n = shape.n, d = shape.d, dv = shape.dv, G = shape.group, B = 24;
constexpr double token = 2 * (d + dv);  ///< bytes of a key and a value, bf16

struct Formula {
  std::vector<Assignment> settings;  ///< that remove dependence on the data of the head
  double kv = 0, meta = 0;           ///< bytes for one kv head, right after a context of n tokens
  double slow = 0;                   ///< the part on the slow tier
  bool of_layer = false;             ///< the bytes are those of all three kv heads of the layer together
};

/// Of layer 1, where the heads are, and of layer 3.
const TextFile& two_gates() {
  static const TextFile table("0\t0\t0\n1\t0\t0\n0\t0\t0\n0\t0\t1\n");
  return table;
}

const std::map<std::string, Formula>& formulas() {
  static const std::map<std::string, Formula> table = {
      {"exact", {.kv = n * token}},
      {"sink", {.kv = B * token}},
      {"snapkv", {.settings = {{"window", "8"}}, .kv = B * token}},
      {"snapkv@kvpress", {.settings = {{"window", "8"}}, .kv = B * token}},
      // beta = 1 gives every layer B.
      {"pyramidkv", {.settings = {{"window", "8"}, {"beta", "1"}}, .kv = B * token}},
      {"knorm", {.kv = B * token}},
      {"keydiff", {.kv = B * token}},
      {"curdkv", {.kv = B * token}},
      // Parts of 10 tokens behind 4 sinks: 9 whole ones, of which the last is kept with 2 tokens, 16 in all; B - 16 is
      // one token of each of 8.
      {"lagkv", {.settings = {{"sinks", "4"}, {"lag", "10"}}, .kv = B * token}},
      {"lagkv@kvpress", {.settings = {{"lag", "10"}}, .kv = B * token}},
      {"tova", {.kv = B * token}},
      {"tova@kvpress", {.kv = B * token}},
      {"expected-attention", {.kv = B * token}},
      {"triattention", {.kv = B * token}},
      {"compactor", {.kv = B * token}},
      // The last 8 queries of each query head.
      {"r-kv", {.kv = B * token, .meta = G * 8 * d * 2}},
      // Four layers of three heads hold 12 (24 - 6) = 216 tokens beyond 6 each, two whole heads 180 of them, one here.
      {"duo",
       {.settings = {{"table", two_gates().path()}, {"sinks", "2"}, {"recent", "4"}},
        .kv = (n + 2 * 6) * token,
        .meta = 4,
        .of_layer = true}},
      {"duo@kvpress",
       {.settings = {{"sinks", "2"}, {"recent", "4"}}, .kv = (n + 2 * 6) * token, .meta = 3 * 4, .of_layer = true}},
      {"h2o", {.kv = B * token, .meta = B * 4}},
      {"h2o-global", {.settings = {{"heavy", "1"}}, .kv = G * B * token}},
      // 4 first tokens and a window; each query head has its own values of the window, with one attention sum each.
      {"cam", {.kv = B * d * 2 + 4 * dv * 2 + G * (B - 4) * dv * 2, .meta = G * (B - 4) * 4}},
      // 24 pages of 4 tokens with two bounds per channel; the ids of the 24 / 4 selected pages.
      {"quest", {.settings = {{"page", "4"}}, .kv = n * token, .meta = 24 * 2 * d * 2 + G * 6 * 4}},
      // int(0.2 d) = 1 skewed channel per query head: its direction, and one number per token.
      {"infinigen", {.kv = n * token, .meta = G * (n + d) * 2 + G * B * 4, .slow = n * token}},
      {"vattention", {.kv = n * token, .meta = G * B * 8, .slow = n * token}},
      // c = 96 / 48 = 2, 96 / 2^0.26 = 80.2 stay, and 80 / 48 = 1.67 is left: pages of one token with a copy of its
      // key.
      {"rocketkv", {.settings = {{"window", "8"}}, .kv = 80 * token, .meta = 80 * d * 2 + B * 4}},
      // 4 tables of 8 codes, with two bounds each. 2 first and 8 last tokens; the codes and the norm of each other.
      {"magicpig",
       {.settings = {{"bits", "3"}, {"tables", "4"}, {"sinks", "2"}, {"window", "8"}},
        .kv = n * token,
        .meta = (n - 10) * 4 * 4 + 4 * 16 * 4 + (n - 10) * 4 + d * 2 + G * (B - 10) * 8,
        .slow = (n - 10) * token}},
      // One cluster, of the tokens between 2 first and 2 last ones.
      {"retroinfer",
       {.settings = {{"sinks", "2"}, {"window", "2"}, {"tokens_per_cluster", "1000"}},
        .kv = n * token,
        .meta = token + 2 * 4 + 4,
        .slow = (n - 4) * token}},
      // Those of quest, keys of 4 bits with two numbers each, and the ids of tokens.
      {"twilight",
       {.settings = {{"page", "4"}},
        .kv = n * token,
        .meta = 24 * 2 * d * 2 + G * 6 * 4 + n * (d / 2 + 4) + G * B * 4}},
      {"attention-matching", {.kv = B * token, .meta = B * 4}},
      // One bin of rank 12 between 2 sinks and 4 recent tokens; a weight for each of its 12; two numbers of 16 bits per
      // channel.
      {"wildcat", {.settings = {{"sinks", "2"}, {"recent", "4"}}, .kv = 18 * token, .meta = 12 * 4 + 2 * dv * 2}},
      {"uniform", {.kv = B * token, .meta = B * 4}},
      // Two rounds leave a quarter of 96 tokens, with one weight each, or one per sum where the sums differ.
      {"uniform-repo", {.kv = B * token, .meta = B * 4}},
      {"balancekv", {.kv = B * token, .meta = B * 4}},
      {"balancekv-repo", {.kv = B * token, .meta = 2 * B * 4}},
      // The largest power of 4 in 96 is 64, whose root is 8: 16 tokens are the most within 24.
      {"kh-compress", {.kv = 16 * token, .meta = 16 * 4}},
      {"kmeans", {.kv = B * token, .meta = B * 4}},
      // 8 sinks on the fast tier; 5 centroids with a size and an offset each; the tokens by cluster, and the ids of a
      // query.
      {"clusterkv",
       {.settings = {{"sinks", "8"}, {"clusters", "5"}},
        .kv = n * token,
        .meta = 5 * d * 2 + 5 * 2 * 4 + (n - 8) * 4 + G * (B - 8) * 4,
        .slow = (n - 8) * token}},
      {"clusterkv-repo",
       {.settings = {{"sinks", "8"}, {"clusters", "5"}},
        .kv = n * token,
        .meta = 5 * d * 2 + 5 * 2 * 4 + (n - 8) * 4 + G * (B - 8) * 4,
        .slow = (n - 8) * token}},
      {"random", {.kv = B * token}},
      {"chelsea", {.kv = B * token, .meta = B * 4}},
      {"bsm", {.kv = B * token, .meta = B * 4}},
      {"mesh", {.kv = B * token, .meta = B * 4}},
      {"subgen-kcenter", {.kv = B * token}},
      // s = B/2 slots of key and value; a radius below every distance gives n clusters of t samples and a
      // representative, with one count each; one norm per slot, mu in fp64.
      {"subgen",
       {.settings = {{"delta", "1e-6"}, {"t", "2"}},
        .kv = B / 2 * token + n * 2 * d * 2,
        .meta = n * d * 2 + n * 4 + B / 2 * 4 + 8}},
      {"oracle-topk", {.kv = n * token, .meta = G * B * 4, .slow = n * token}},
      {"oracle-error", {.kv = B * token, .meta = B * 4}},
      // One group per key and per value of at most 32 channels: f16 minimum and step. 8 bits are the last level of int.
      {"int", {.kv = n * (d + 4 + dv + 4)}},
      {"int8", {.kv = n * (d + 4 + dv + 4)}},
      {"int4", {.settings = {{"group", "4"}}, .kv = n * (d / 2 + 2 * 4 + dv / 2 + 2 * 4)}},
      {"int2", {.kv = n * (d / 4 + 4 + dv / 4 + 4)}},
      // Heads of 32 channels: one block of keys and one of values.
      {"q8_0", {.kv = n * 2 * 34}},
      {"q5_1", {.kv = n * 2 * 24}},
      {"q6_0", {.kv = n * 2 * 26}},
      {"q5_0", {.kv = n * 2 * 22}},
      {"q4_1", {.kv = n * 2 * 20}},
      {"q4_0", {.kv = n * 2 * 18}},
      {"iq4_nl", {.kv = n * 2 * 18}},
      {"fp8", {.kv = n * (d + dv)}},
      // Heads of 16 channels, a block with 1 byte; a scale for all keys, and one for all values.
      {"nvfp4", {.kv = n * 2 * (16.0 / 2 + 1) + 2 * 4}},
      // 4 bits, the last level, and a norm in f16.
      {"turboquant", {.kv = n * (d / 2 + 2 + dv / 2 + 2)}},
      // The head is in layer 1, which vLLM stores whole. tests/unit/methods/quantisation has the bytes of the others.
      {"turboquant@vllm", {.kv = n * token}},
      // Keys: 16 signs, 8 of the outliers, two norms; 2 outlier channels for each of 3 groups. 32 values wait.
      {"qjl",
       {.settings = {{"residual", "32"}, {"sketch", "16"}, {"initial_sketch", "16"}, {"outliers", "2"}},
        .kv = n * (2 + 1 + 4) + 3 * 2 + 64 * (dv / 4 + 4) + 32 * dv * 2}},
      // 96 tokens are 12 batches of 8, so that no key waits; 8 values wait. Groups of 4 tokens in each channel of the
      // keys; two groups, of 4 and 2 channels, in each value.
      {"kivi4",
       {.settings = {{"group", "4"}, {"residual", "8"}},
        .kv = n * d / 2 + n / 4 * d * 4 + (n - 8) * (dv / 2 + 2 * 4) + 8 * dv * 2}},
      // 80 keys are two batches of 40, and 16 wait; 40 values wait. 10 groups of 8 tokens; one group per value.
      {"kivi2",
       {.settings = {{"group", "8"}, {"residual", "40"}},
        .kv = 80 * d / 4 + 10 * d * 4 + 16 * d * 2 + 56 * (dv / 4 + 4) + 40 * dv * 2}},
      // 4 bits, the last level. Of 96 keys of a channel one is below the percentile 0.5 and one above 99.5, but for the
      // largest of channel 6 of head 0, 1.97820, whose percentile f16 rounds to 1.97852; of the 18 values of a token
      // one is at each end. 4 bytes an outlier. Thresholds of channels; 16 levels in fp32 and 97 row pointers of keys
      // and of values; a scale and an offset for the values of a token.
      {"kvquant-nofisher",
       {.kv = 3 * n * (d / 2 + dv / 2) + 4 * (3 * d * 2 - 1) + 4 * n * 2 + 3 * d * 2 * 2 + 2 * (16 * 4 + (n + 1) * 4) +
              n * 4,
        .of_layer = true}},
  };
  return table;
}

}  // namespace

TEST_CASE("the footprint of every method equals its formula") {
  for (const MethodInfo& info : all_methods()) {
    CAPTURE(info.name);
    REQUIRE_MESSAGE(formulas().contains(info.name), "a new method needs its bytes by formula here");
    const Formula& formula = formulas().at(info.name);
    const Row row{&info, info.bind(formula.settings)};
    Trial trial(row, ref());
    const Heads heads = trial.heads(shape);
    const Instance instance = trial.open(heads, static_cast<Index>(B), 0);
    double layer = 0, meta = 0;
    for (const Footprint& arrays : instance.session->footprint()) {
      const Bytes bytes = account(arrays, Element::f16, 0, shape.n, heads.front().d, heads.front().dv);
      layer += bytes.kv, meta += bytes.meta;
      if (!formula.of_layer) CHECK(bytes.kv == formula.kv);
      if (!formula.of_layer) CHECK(bytes.meta == formula.meta);
      CHECK(bytes.slow == formula.slow);
      CHECK(bytes.fast == bytes.kv + bytes.meta - formula.slow);
      CHECK(bytes.full == 2 * n * static_cast<double>(heads.front().d + heads.front().dv));
    }
    if (formula.of_layer) CHECK(layer == formula.kv);
    if (formula.of_layer) CHECK(meta == formula.meta);
  }
}

TEST_CASE("bytes of an element") {
  CHECK(element_bytes(Element::kv, Element::f16) == 2);
  CHECK(element_bytes(Element::kv, Element::f32) == 4);
  CHECK(element_bytes(Element::f32, Element::f16) == 4);
  CHECK(element_bytes(Element::i32, Element::f16) == 4);
  CHECK(element_bytes(Element::f16, Element::f32) == 2);
  CHECK(element_bytes(Element::u8, Element::f32) == 1);
}

TEST_CASE("a footprint is summed by kind, tier and read") {
  const Footprint footprint = {
      {.name = "keys", .rows = 10, .cols = 4, .tier = Tier::slow, .read = Read::with_entry},    // 80 B, 8 per row
      {.name = "values", .rows = 10, .cols = 6, .tier = Tier::slow, .read = Read::with_entry},  // 120 B, 12 per row
      {.name = "window", .rows = 3, .cols = 10},                                                // 60 B
      {.name = "centroids", .element = Element::f32, .rows = 2, .cols = 4, .content = Content::meta},  // 32 B
      {.name = "labels", .element = Element::u8, .rows = 10, .cols = 1, .read = Read::never, .content = Content::meta},
  };
  const Bytes bytes = account(footprint, Element::f16, 4.5, 10, 4, 6);
  CHECK(bytes.kv == 80 + 120 + 60);
  CHECK(bytes.meta == 32 + 10);
  CHECK(bytes.slow == 200);
  CHECK(bytes.fast == 60 + 32 + 10);
  CHECK(bytes.read == 4.5 * 20 + 60 + 32);
  CHECK(bytes.full == 10 * 10 * 2);
}

TEST_CASE("the element type of the cache applies to kv arrays only") {
  const Footprint footprint = {
      {.name = "keys", .rows = 5, .cols = 2},
      {.name = "weights", .element = Element::f16, .rows = 5, .cols = 1, .content = Content::meta}};
  const Bytes bytes = account(footprint, Element::f32, 0, 5, 2, 0);
  CHECK(bytes.kv == 5 * 2 * 4);
  CHECK(bytes.meta == 5 * 2);
  CHECK(bytes.full == 5 * 2 * 4);
}

TEST_CASE("a query reads an array at most once") {
  const Footprint footprint = {{.name = "keys", .rows = 3, .cols = 1, .read = Read::with_entry}};
  CHECK(account(footprint, Element::f16, 100, 3, 1, 1).read == 6);
}

TEST_CASE("entries are read from the arrays in which they lie") {
  const Footprint footprint = {
      {.name = "codes", .element = Element::u8, .rows = 6, .cols = 4, .read = Read::with_entry, .share = 0.75},
      {.name = "scales of groups",
       .element = Element::u8,
       .rows = 2,
       .cols = 5,
       .read = Read::with_entry,
       .share = 0.75},
      {.name = "rest", .rows = 2, .cols = 4, .read = Read::with_entry, .share = 0.25}};
  CHECK(account(footprint, Element::f16, 4, 8, 4, 0).read == 3 * 4 + 2 * 5 + 1 * 8);
}

TEST_CASE("an empty footprint costs nothing") {
  const Bytes bytes = account({}, Element::f16, 5, 7, 2, 2);
  CHECK(bytes.kv + bytes.meta + bytes.fast + bytes.slow + bytes.read == 0);
  CHECK(bytes.full == 7 * 4 * 2);
}
