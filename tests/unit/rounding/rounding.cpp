// SPDX-License-Identifier: Apache-2.0
// What rounding keys does to attention: shapes of keys and moved attention worked out by hand, biases planted into a
// trace from outside, and every kind of layer against loops of its own.
#include <kvbench/rounding/rounding.hpp>

#include <algorithm>
#include <cmath>

#include <doctest/doctest.h>

#include <kvbench/methods/registry.hpp>
#include <kvbench/replay/plan/selection.hpp>
#include <kvbench/trace/writer.hpp>

#include <support/small_trace.hpp>
#include <unit/trace/sample.hpp>

using namespace kvbench;
using namespace kvbench::rounding;
using namespace kvbench::testing;
using doctest::Approx;
using trace::Array;

namespace {

std::vector<HeadRounding> measured(const trace::Reader& reader) {
  std::vector<HeadRounding> heads;
  for (const replay::HeadPlace& place : replay::select_heads(reader.info(), {}))
    heads.push_back(measure_head(reader, place, cpu()));
  return heads;
}

trace::SynthOptions wide_options() {
  trace::SynthOptions options = small_options();
  options.num_tokens = 80, options.prompt_tokens = 60, options.num_queries = 30, options.layers = 3;
  options.head_dim = options.value_dim = 64, options.key_norm = 8, options.column_sums = false;
  return options;
}

/// A copy of a trace with `change` applied to its arrays, and to what is said of it.
class Changed {
 public:
  using Change = std::function<void(std::size_t layer, Array array, std::int64_t head, std::vector<float>& rows)>;
  Changed(const trace::Reader& from, const Change& change, const std::function<void(trace::TraceInfo&)>& info = {}) {
    trace::TraceInfo told = from.info();
    if (info) info(told);
    trace::Writer writer(folder_ / "t.h5", told);
    trace::test::for_each_head(from.info(),
                               [&](std::size_t p, std::size_t l, Array array, std::int64_t head, const trace::Shape&) {
                                 const trace::PromptInfo& prompt = from.info().prompts[p];
                                 std::vector<float> rows = from.read_head(prompt, prompt.layers[l], array, head);
                                 change(l, array, head, rows);
                                 writer.write_rows(p, l, array, head, 0, rows);
                               });
    writer.commit();
    reader_ = std::make_unique<trace::Reader>(folder_ / "t.h5");
  }
  const trace::Reader& reader() const { return *reader_; }

 private:
  TempFolder folder_;
  std::unique_ptr<trace::Reader> reader_;
};

void unchanged(std::size_t, Array, std::int64_t, std::vector<float>&) {}

double by_token(const HeadRounding& head) { return head.of(Family::by_token, "q4_0").moved; }

}  // namespace

TEST_CASE("four keys of two channels: the mean key against what is left") {
  // m = (10, 0); k - m = (0, +-1), (0, +-3), whose mean square is (1 + 1 + 9 + 9) / 4 = 5.
  const KeyShape shape = shape_of(std::vector<float>{10, 1, 10, -1, 10, 3, 10, -3}, 2);
  CHECK(shape.constant == Approx(10 / std::sqrt(5.0)));
  CHECK(shape.channel == 0);
  CHECK(shape.mean == 10);
  CHECK(shape.outliers.empty());  // the largest are 10 and 3, their median 6.5
}

TEST_CASE("a channel is an outlier above five times the median channel") {
  CHECK(shape_of(std::vector<float>{10, -2, 1}, 3).outliers.empty());  // 10 = 5 * 2
  CHECK(shape_of(std::vector<float>{-10.5F, 2, 1}, 3).outliers == std::vector<Index>{0});
  CHECK(shape_of(std::vector<float>{1, 0, 30, 0, 0, 2}, 3).outliers == std::vector<Index>{2});  // of 1, 0 and 30
  CHECK(shape_of(std::vector<float>{0, 0, 7, 0}, 4).outliers == std::vector<Index>{2});         // the median is 0
  CHECK(shape_of(std::vector<float>{7}, 1).outliers.empty());
}

TEST_CASE("keys that are all equal are constant, keys of zeros and of mean zero are not") {
  CHECK(std::isinf(shape_of(std::vector<float>{3, -4, 3, -4}, 2).constant));
  CHECK(shape_of(std::vector<float>{3, -4, 3, -4}, 2).channel == 1);
  CHECK(std::isinf(shape_of(std::vector<float>{3, -4}, 2).constant));  // one token
  CHECK(shape_of(std::vector<float>{0, 0, 0, 0}, 2).constant == 0);
  CHECK(shape_of(std::vector<float>{1, -2, -1, 2}, 2).constant == 0);
}

TEST_CASE("four tokens: the share of the attention that q4_0 moves") {
  // Keys are (8, a, 0, ..) with a = .4, .6, 1, 2. The scale of q4_0 is 8 / -8 = -1, so that it rounds a to 0, 1, 1, 2.
  // The query (0, 1, 0, ..) sees the logits a. exp: 1.4918, 1.8221, 2.7183, 7.3891 of 13.4213 against 1, 2.7183,
  // 2.7183, 7.3891 of 13.8256. p = .1112, .1358, .2025, .5506; p' = .0723, .1966, .1966, .5345. Half of the sum of
  // |p - p'| is .0609.
  TempFolder folder;
  trace::TraceInfo info;
  info.model = "hand", info.num_layers = 1, info.num_query_heads = info.num_kv_heads = 1;
  info.head_dim = info.value_dim = 32, info.rope_type = "none", info.rope_layout = "half";
  trace::PromptInfo prompt{.id = "0", .num_tokens = 4, .prompt_tokens = 4, .tokens = {0, 1, 2, 3}};
  prompt.layers = {{.layer = 0, .scale = 1, .query_positions = {0, 3}}};
  info.prompts = {prompt};
  {
    trace::Writer writer(folder / "hand.h5", info);
    std::vector<float> keys(4 * 32), queries(2 * 32);
    const float a[] = {.4F, .6F, 1, 2};
    for (std::size_t j = 0; j < 4; ++j) keys[j * 32] = 8, keys[j * 32 + 1] = a[j];
    queries[1] = queries[33] = 1;
    writer.write_rows(0, 0, Array::keys, 0, 0, keys);
    writer.write_rows(0, 0, Array::values, 0, 0, std::vector<float>(4 * 32));
    writer.write_rows(0, 0, Array::queries, 0, 0, queries);
    writer.commit();
  }
  const HeadRounding head = measured(trace::Reader(folder / "hand.h5")).front();
  CHECK(head.queries == 1);  // that at position 0 sees one token
  CHECK(by_token(head) == Approx(0.0609).epsilon(0.002));
  CHECK(head.of(Family::by_token, "q4_0").bits == 4.5);
  // Without the mean, a is -.6, -.4, 0, 1 of a scale of 1 / -8: rounded to -.625, -.375, 0 and 1, which is .006.
  CHECK(head.of(Family::centred, "q4_0").moved < 0.01);
  // Four tokens fill no group of 32 of a channel; 32 channels are no rotation of 64.
  CHECK(std::isnan(head.of(Family::by_channel, "kivi4").moved));
  CHECK(head.of(Family::by_channel, "kivi4").reason == "4 tokens are too few to fill a group");
  CHECK(std::isnan(head.needed_bits(Family::rotated)));
  CHECK_FALSE(head.of(Family::rotated, "q4_0").reason.empty());
  CHECK(head.needed_bits(Family::by_token) == 4.5);
}

TEST_CASE("the bits that a family needs are those of the last format before the first that moves too much") {
  HeadRounding head;
  const std::vector<double> moved{.01, .05, .4, .01, .4, .05, .4, .05, .01}, bits{8.5, 6, 4.5, 8.5, 6, 4.5, 5, 3, 4.5};
  for (std::size_t f = 0; f < moved.size(); ++f) head.formats.push_back({.bits = bits[f], .moved = moved[f]});
  CHECK(head.needed_bits(Family::by_token) == 6);
  CHECK(head.needed_bits(Family::rotated) == 8.5);
  CHECK(std::isinf(head.needed_bits(Family::by_channel)));
  head.formats[1].moved = NAN;
  CHECK(std::isnan(head.needed_bits(Family::by_token)));
}

TEST_CASE("a constant that is added to the keys of one head is found there, with its channel") {
  const SmallTrace plain(wide_options());
  const Changed biased(plain.reader(), [](std::size_t layer, Array array, std::int64_t head, auto& rows) {
    for (std::size_t i = 9; layer == 2 && array == Array::keys && head == 1 && i < rows.size(); i += 64) rows[i] += 150;
  });
  const std::vector<HeadRounding> before = measured(plain.reader()), after = measured(biased.reader());
  for (const HeadRounding& head : before) {
    CHECK(head.keys.constant < 0.5);
    CHECK(head.keys.outliers.empty());
    CHECK(head.most_by_token() < most_moved);
  }
  const HeadRounding& worst = worst_first(after).front();
  CHECK(worst.layer == 2);
  CHECK(worst.kv_head == 1);
  CHECK(worst.keys.channel == 9);
  CHECK(worst.keys.mean == Approx(150).epsilon(0.01));
  CHECK(worst.keys.outliers == std::vector<Index>{9});
  CHECK(worst.keys.constant > 15);
  CHECK(worst.most_by_token() > most_moved);
  CHECK(worst.of(Family::rotated, "q4_0").moved > most_moved);
  // What rounds by channel, or without the mean, does what it did before.
  for (const Family family : {Family::by_channel, Family::centred}) {
    const double was = before.back().of(family, family == Family::centred ? "q4_0" : "kivi4").moved,
                 now = worst.of(family, family == Family::centred ? "q4_0" : "kivi4").moved;
    CHECK(now < 0.1);
    CHECK(now == Approx(was).epsilon(0.3));
  }
  CHECK(worst.needed_bits(Family::by_channel) <= 5);
  // The other heads are as they were.
  for (std::size_t h = 0; h + 1 < after.size(); ++h) CHECK(by_token(after[h]) == by_token(before[h]));
}

namespace {

/// Softmax over the tokens first <= j < last, in loops of its own.
std::vector<double> softmax_of(const float* query, const std::vector<float>& keys, std::size_t d, Index first,
                               Index last, double scale, double cap) {
  std::vector<double> p;
  double sum = 0;
  for (Index j = first; j < last; ++j) {
    double logit = 0;
    for (std::size_t c = 0; c < d; ++c) logit += double{query[c]} * double{keys[static_cast<std::size_t>(j) * d + c]};
    logit *= scale;
    if (cap > 0) logit = cap * std::tanh(logit / cap);
    sum += p.emplace_back(std::exp(logit));
  }
  for (double& x : p) x /= sum;
  return p;
}

/// What a format moves in a head, from its codec and loops.
double moved_in_loops(const trace::Reader& reader, std::size_t l, Index kv_head, const KeyFormat& format) {
  const trace::TraceInfo& info = reader.info();
  const trace::PromptInfo& prompt = info.prompts[0];
  const trace::LayerInfo& layer = prompt.layers[l];
  const auto d = static_cast<std::size_t>(info.head_dim);
  const std::vector<float> keys = reader.read_head(prompt, layer, Array::keys, kv_head);
  const auto buffer = ref().adopt(std::vector(keys), prompt.num_tokens, info.head_dim);
  const methods::MethodInfo& method = methods::find_method(format.method);
  const methods::Codecs codecs =
      method.quantiser.codecs({.keys = buffer, .values = buffer}, method.bind(format.settings), 0, 0, ref());
  const Index encoded = codecs.keys->encoded(prompt.num_tokens, prompt.num_tokens);
  std::vector<float> rounded = ref().read(codecs.keys->decoded(buffer.slice(0, encoded), ref()));
  rounded.insert(rounded.end(), keys.begin() + encoded * info.head_dim, keys.end());
  double sum = 0;
  Index count = 0;
  for (Index g = 0; g < info.group(); ++g) {
    const std::vector<float> queries = reader.read_head(prompt, layer, Array::queries, kv_head * info.group() + g);
    for (std::size_t i = 0; i < layer.query_positions.size(); ++i) {
      const Index last = layer.query_positions[i] + 1,
                  first = layer.window > 0 ? std::max<Index>(0, last - layer.window) : 0;
      if (last - first < 2) continue;
      const auto p = softmax_of(&queries[i * d], keys, d, first, last, layer.scale, layer.softcap),
                 q = softmax_of(&queries[i * d], rounded, d, first, last, layer.scale, layer.softcap);
      for (std::size_t j = 0; j < p.size(); ++j) sum += std::abs(p[j] - q[j]) / 2;
      ++count;
    }
  }
  return sum / static_cast<double>(count);
}

}  // namespace

TEST_CASE("windows, softcaps, element types and all queries agree with loops, on every host back end") {
  for (const trace::Dtype dtype : {trace::Dtype::f32, trace::Dtype::f16, trace::Dtype::bf16}) {
    trace::SynthOptions options = wide_options();
    options.dtype = dtype, options.num_queries = 80, options.layers = 4, options.key_norm = 16, options.key_bias = 40;
    const SmallTrace plain(options);
    const Changed layers(plain.reader(), unchanged, [](trace::TraceInfo& info) {
      info.prompts[0].layers[0].window = 10, info.prompts[0].layers[1].softcap = 2;
      info.prompts[0].layers[2].window = 1, info.prompts[0].layers[3].window = 33;
    });
    const std::vector<HeadRounding> heads = measured(layers.reader());
    for (std::size_t h = 0; h < heads.size(); ++h) {
      for (std::size_t f = 0; f + 1 < key_formats().size(); ++f) {  // the last is not of these keys
        const double moved = heads[h].formats[f].moved;
        if (h / 2 == 2) {
          CHECK(std::isnan(moved));
          CHECK(heads[h].formats[f].reason == "every recorded query sees one token");
          continue;
        }
        CHECK(
            moved ==
            Approx(moved_in_loops(layers.reader(), h / 2, static_cast<Index>(h % 2), key_formats()[f])).epsilon(1e-4));
      }
    }
    const HeadRounding again = measure_head(layers.reader(), {0, 0, 0}, ref());
    CHECK(by_token(again) == Approx(by_token(heads[0])).epsilon(1e-4));
  }
}

TEST_CASE("latent keys: formats that keep the values apart are refused, the others are measured") {
  trace::SynthOptions options = wide_options();
  options.values_in_keys = true, options.head_dim = 96, options.value_dim = 64;
  const SmallTrace latent(options);
  const HeadRounding head = measured(latent.reader()).front();
  CHECK(by_token(head) > 0);
  CHECK(by_token(head) < most_moved);
  CHECK(std::isnan(head.of(Family::by_channel, "kivi4").moved));
  CHECK_FALSE(head.of(Family::by_channel, "kivi4").reason.empty());
}

TEST_CASE("nothing moves where keys or queries do not tell tokens apart") {
  const SmallTrace plain(wide_options());
  const Changed same(plain.reader(), [](std::size_t layer, Array array, std::int64_t, auto& rows) {
    if (layer == 0 && array == Array::keys) {
      for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = i % 64 == 5 ? 300.F : 1.F;  // constant keys
    }
    if (layer == 1 && array == Array::queries) std::ranges::fill(rows, 0.F);
    if (layer == 2 && array == Array::keys) std::ranges::fill(rows, 0.F);
  });
  for (const HeadRounding& head : measured(same.reader())) {
    CAPTURE(head.layer);
    for (const Rounded& rounded : head.formats) CHECK(rounded.moved == 0);
    if (head.layer == 0) CHECK(std::isinf(head.keys.constant));
    if (head.layer == 2) CHECK(head.keys.constant == 0);
  }
}

TEST_CASE("keys beyond the scales of a format move everything, and logits beyond fp32 are refused") {
  const SmallTrace plain(wide_options());
  const auto scaled = [&](float factor, float queries) {
    return std::make_unique<Changed>(plain.reader(), [=](std::size_t, Array array, std::int64_t, auto& rows) {
      for (float& x : rows) x *= array == Array::keys ? factor : array == Array::queries ? queries : 1;
    });
  };
  const HeadRounding head = measured(scaled(1e10F, 1e-10F)->reader()).front();
  CHECK(by_token(head) == 1);  // scales are f16
  CHECK(std::isinf(head.needed_bits(Family::by_token)));
  CHECK_THROWS_AS(measured(scaled(1e20F, 1e20F)->reader()), Error);
}

TEST_CASE("heads are ordered by the most that a format by token moves, unknown ones last") {
  std::vector<HeadRounding> heads;
  for (const double moved : {.1, double{NAN}, .5, .3}) {
    HeadRounding& head = heads.emplace_back();
    for (std::size_t f = 0; f < key_formats().size(); ++f) head.formats.push_back({.bits = 4.5, .moved = .01});
    head.formats[1].moved = moved;
  }
  std::vector<double> order;
  for (const HeadRounding& head : worst_first(heads)) order.push_back(head.most_by_token());
  CHECK(order[0] == .5);  // the most of the formats by token, which is that of q5_1 here
  CHECK(order[1] == .3);
  CHECK(order[2] == .1);
  CHECK(std::isnan(order[3]));
}
