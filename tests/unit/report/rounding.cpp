// SPDX-License-Identifier: Apache-2.0
// What is said of heads whose keys are hard to round: the worst layer first, its cause, and what keeps it.
#include <cmath>

#include <doctest/doctest.h>

#include <kvbench/report/claims/sections.hpp>
#include <kvbench/report/document/writers.hpp>

#include <support/messages.hpp>

using namespace kvbench;
using namespace kvbench::report;
using namespace kvbench::rounding;
using namespace kvbench::testing;

namespace {

/// Shares of q8_0, q5_1, q4_0, the same rotated, kivi4, kivi2, and q4_0 of the centred keys.
HeadRounding head_of(std::int64_t layer, Index kv_head, const std::vector<double>& moved, KeyShape keys = {}) {
  HeadRounding head{.prompt = "0", .layer = layer, .kv_head = kv_head, .keys = std::move(keys)};
  const double bits[] = {8.5, 6, 4.5, 8.5, 6, 4.5, 5, 3, 4.5};
  for (std::size_t f = 0; f < moved.size(); ++f) {
    head.formats.push_back({.bits = bits[f], .moved = moved[f]});
    if (std::isnan(moved[f])) head.formats.back().reason = "the shape is refused";
  }
  return head;
}

const std::vector<double> mild = {.01, .05, .1, .01, .05, .1, .05, .2, .1};

std::vector<std::string> said(const std::vector<HeadRounding>& heads) {
  return std::get<AnswerBlock>(rounding_blocks(worst_first(heads), false).front()).sentences;
}
const DocTable& table(const std::vector<Block>& blocks) { return std::get<DocTable>(blocks.back()); }

}  // namespace

TEST_CASE("the layer with a constant part comes first, with its cause and what keeps it") {
  const HeadRounding bad = head_of(3, 1, {.12, .48, .27, .02, .2, .4, .05, .3, .06},
                                   {.constant = 12.3, .channel = 7, .mean = -150, .outliers = {7}});
  const auto sentences = said({head_of(0, 0, mild), head_of(0, 1, mild), head_of(3, 0, mild), bad});
  REQUIRE(sentences.size() == 2);
  CHECK(
      sentences[0] ==
      "Layer 3 breaks under keys rounded by token: q5_1 moves 48 % of the attention of kv head 1 to other tokens "
      "(q4_0 27 %, q8_0 12 %), because its keys have a constant part 12 times the size of what differs between "
      "tokens, largest in channel 7 (mean -150); without it q4_0 moves 6 %. What keeps this layer: 8.5 bits by token; "
      "6 bits by token, rotated; 5 bits by channel.");
  CHECK(sentences[1] == "More than 25 % moves in 1 of 2 layers: 3.");
}

TEST_CASE("a constant part whose absence does not help is not the cause") {
  const std::vector<double> moved = {.12, .48, .5, .3, .3, .4, .3, .3, .45};
  const std::string outliers = said({head_of(3, 1, moved, {.constant = 12, .outliers = {2, 7}})})[0],
                    one = said({head_of(3, 1, moved, {.constant = 12, .outliers = {2}})})[0],
                    many = said({head_of(3, 1, moved, {.outliers = {1, 2, 3, 4, 5}})})[0],
                    neither = said({head_of(3, 1, moved, {.constant = 12})})[0];
  CHECK(contains(outliers, "because of channels of its keys more than 5 times as large as the median channel (2, 7)"));
  CHECK(contains(one, "because of a channel of its keys more than 5 times as large as the median channel (2)"));
  CHECK(contains(many, "(5 of them)"));
  CHECK(contains(neither, "no outlier channel, and without their constant part q4_0 still moves 45 %"));
  for (const std::string& text : {outliers, one, many, neither}) {
    CHECK_FALSE(contains(text, "because its keys have a constant part"));
    CHECK(contains(text, "What keeps this layer: 8.5 bits by token."));  // no rotated format, nothing by channel
  }
  CHECK(contains(said({head_of(3, 1, std::vector<double>(9, .5))})[0], "No format that was tried keeps this layer."));
}

TEST_CASE("without a layer that breaks the sentence says so, with the worst") {
  const auto sentences = said({head_of(4, 2, mild), head_of(0, 0, {.01, .05, .24, .01, .05, .1, .05, .2, .1})});
  REQUIRE(sentences.size() == 1);
  CHECK(
      sentences[0] ==
      "No layer breaks under keys rounded by token: at worst, in layer 0, q4_0 moves 24 % of the attention of kv head "
      "0 to other tokens (q5_1 5 %, q8_0 1 %); more than 25 % would break it.");
}

TEST_CASE("what cannot be told is said, of all layers or of some") {
  const HeadRounding refused = head_of(2, 0, std::vector<double>(9, NAN));
  CHECK(said({refused}) == std::vector<std::string>{"Cannot tell what rounding keys by token does to this model: the "
                                                    "shape is refused."});
  const auto some = said({refused, head_of(4, 2, mild)});
  REQUIRE(some.size() == 2);
  CHECK(contains(some[0], "No layer breaks"));
  CHECK(some[1] == "Cannot be told of 1 of 2 layers (2): the shape is refused.");
}

TEST_CASE("the table has the worst head of each layer, or every head, and texts where there are several") {
  std::vector<HeadRounding> heads{head_of(0, 0, mild), head_of(0, 1, std::vector<double>(9, .5)), head_of(5, 0, mild)};
  heads[0].keys.constant = INFINITY;
  const std::vector<Block> layers = rounding_blocks(worst_first(heads), false),
                           every = rounding_blocks(worst_first(heads), true);
  REQUIRE(table(layers).rows.size() == 2);
  CHECK(table(layers).rows[0][0].text == "0");
  CHECK(table(layers).rows[0][1].text == "1");
  CHECK(table(every).rows.size() == 3);
  CHECK(contains(terminal_text(every), "all"));   // the constant part of constant keys
  CHECK(contains(terminal_text(every), ">8.5"));  // by token, and rotated
  CHECK(contains(terminal_text(every), ">5"));    // by channel
  CHECK_FALSE(contains(terminal_text(every), "text"));
  heads[1].prompt = "7";
  const std::vector<Block> texts = rounding_blocks(worst_first(heads), false);
  CHECK(contains(terminal_text(texts), "text"));
  CHECK(contains(std::get<AnswerBlock>(texts.front()).sentences[0], "of kv head 1 on text 7 to other tokens"));
}
