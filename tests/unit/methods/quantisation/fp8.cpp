// SPDX-License-Identifier: Apache-2.0
#include "coded_rows.hpp"

#include <bit>
#include <cmath>

#include <kvbench/methods/compose.hpp>

using namespace kvbench;
using namespace kvbench::methods;
using namespace kvbench::testing;

namespace {

using Settings = std::vector<Assignment>;

Floats of_one_head(const Settings& settings, const Floats& prompt, const Floats& rows, Index d) {
  return decoded(*key_codecs("fp8", settings, {coded_prompt(prompt, d)}).front(), rows, d);
}

struct Form {
  const char* name;
  float largest, steps, smallest;  ///< steps: 2^(bits of mantissa + 1)
};
constexpr Form e4m3 = {"e4m3", 448, 16, 0x1p-9f}, e5m2 = {"e5m2", 57344, 8, 0x1p-16f};

/// The bound of the banner, with fp32's rounding of the scale, of x / s and of the product.
float bound(const Form& form, float x, float s, float largest_of_row) {
  const float inverse_overflows = largest_of_row < 0x1p-126f * form.largest ? largest_of_row : 0;
  return std::max({std::fabs(x) / (form.steps + 1), s * form.smallest / 2, std::fabs(x) - form.largest * s,
                   inverse_overflows}) *
             (1 + 1e-5f) +
         1e-6f * std::fabs(x);
}

}  // namespace

// e4m3: numbers from 1 to 2 are 1/8 apart, from 16 to 32 2, below 2^-6 2^-9. 17/16 and 19/16 are ties between 8/8 and
// 9/8 and between 9/8 and 10/8, which go to the even ones 8/8 and 10/8; so do 17 and 19, and 1/2 and 3/2 of 2^-9.
TEST_CASE("fp8 with scale one rounds to the nearest e4m3 number and saturates at 448") {
  CHECK(of_one_head({}, {}, {17 / 16.f, 19 / 16.f, 17, 19, 0x1p-10f, 3 * 0x1p-10f, 500, -1e30f}, 8) ==
        Floats{1, 1.25, 16, 20, 0, 0x1p-8f, 448, -448});
}

// e5m2: 1/4 apart from 1 to 2, 2 from 8 to 16, 2^-16 below 2^-14.
TEST_CASE("fp8 in e5m2") {
  CHECK(of_one_head({{"form", "e5m2"}}, {}, {9 / 8.f, 11 / 8.f, 9, 11, 0x1p-17f, 3 * 0x1p-17f, 60000, -1e30f}, 8) ==
        Floats{1, 1.5, 8, 12, 0, 0x1p-15f, 57344, -57344});
}

// s = 672 / 448 = 1.5: 2 is 1.333 s, nearest 11/8 s = 2.0625; 3 = 2 s; 700 > 448 s = 672.
TEST_CASE("fp8 with a scale per head keeps that of the prompt") {
  CHECK(of_one_head({{"scale", "head"}}, {1, -672}, {2, 3, 700, -1e6f}, 2) == Floats{2.0625, 3, 672, -672});
}

TEST_CASE("fp8 with a scale per head takes 1 where the prompt is empty or 0") {
  CHECK(of_one_head({{"scale", "head"}}, {}, {2.2f, 500}, 2) == Floats{2.25, 448});
  CHECK(of_one_head({{"scale", "head"}}, {0, 0}, {2.2f, 500}, 2) == Floats{2.25, 448});
}

// Head 1 has the largest number, 672, so that s = 1.5 for both; alone, head 0 has s = 448 / 448 = 1, and 2 is exact.
TEST_CASE("fp8 with a scale per tensor has one for all heads of the layer") {
  std::vector<HeadPrompt> heads = {coded_prompt({448, 0}, 2), coded_prompt({-672, 5}, 2)};
  for (HeadPrompt& head : heads) head.num_kv_heads = 2;
  const auto codecs = key_codecs("fp8", {{"scale", "tensor"}}, heads);
  for (const auto& codec : codecs) CHECK(decoded(*codec, {2, 700}, 2) == Floats{2.0625, 672});
  CHECK(decoded(*key_codecs("fp8", {{"scale", "head"}}, heads)[0], {2, 700}, 2) == Floats{2, 448});

  heads.pop_back();
  CHECK_THROWS_AS(key_codecs("fp8", {{"scale", "tensor"}}, heads), Unavailable);
  CHECK_NOTHROW(key_codecs("fp8", {{"scale", "head"}}, heads));
}

// s = 672 / 448 = 1.5 and 56 / 448 = 1/8: 2 is 16 s, and 2.1 is 16.8 s, nearest 16 s.
TEST_CASE("fp8 with a scale per token") {
  CHECK(of_one_head({{"scale", "token-head"}}, {}, {2, -672, 2.1f, 56}, 2) == Floats{2.0625, -672, 2, 56});
}

TEST_CASE("fp8 keeps the order of numbers and the bound of its error, also of hostile rows") {
  const Floats rows = hostile_rows(), prompt = random_numbers(160, 5, 0);
  for (const Form& form : {e4m3, e5m2}) {
    for (const std::string scale : {"one", "tensor", "head", "token-head"}) {
      CAPTURE(std::string(form.name));
      CAPTURE(scale);
      const Floats out = of_one_head({{"form", form.name}, {"scale", scale}}, prompt, rows, 16);
      check_monotonic(rows, out, 16);
      for (std::size_t i = 0; i < rows.size(); ++i) {
        const float of_row = largest_of(rows, i / 16 * 16, 16);
        const float s = scale == "one"          ? 1
                        : scale == "token-head" ? of_row / form.largest
                                                : largest_of(prompt, 0, prompt.size()) / form.largest;
        CAPTURE(rows[i]);
        CHECK(std::fabs(out[i] - rows[i]) <= bound(form, rows[i], s, scale == "token-head" ? of_row : INFINITY));
      }
      if (scale != "token-head") CHECK(of_one_head({{"form", form.name}, {"scale", scale}}, prompt, out, 16) == out);
    }
  }
}

// 127 / 127 = 1 and 254 / 127 = 2.
TEST_CASE("int8 in vLLM's forms rounds numbers to whole steps of a token, or cuts them") {
  const auto of_form = [](const char* form) {
    return key_codecs("int8", {{"group", "0"}, {"form", form}}, {coded_prompt({}, 8)}).front();
  };
  const auto rounding = of_form("vllm"), codec = of_form("vllm-cut");
  CHECK(decoded(*rounding, {127, 1.9f, -1.9f, 63.99f, -0.49f, 1.5f, -2.5f, -127}, 8) ==
        Floats{127, 2, -2, 64, 0, 2, -2, -127});
  CHECK(decoded(*rounding, {-254, 253.9f, 3.1f, -3.1f, 4, -4, 0.99f, 0}, 8) == Floats{-254, 254, 4, -4, 4, -4, 0, 0});
  CHECK(decoded(*codec, {127, 1.9f, -1.9f, 63.99f, -0.99f, 1, -1, -127}, 8) == Floats{127, 1, -1, 63, 0, 1, -1, -127});
  CHECK(decoded(*codec, {-254, 253.9f, 3, -3, 4, -4, 1.99f, 0}, 8) == Floats{-254, 252, 2, -2, 4, -4, 0, 0});
  CHECK(bytes_of(codec->footprint(100, 8)) == 100 * 8 + 100 * 4);
  CHECK_THROWS_WITH(find_method("int8").bind(Settings{{"form", "vllm"}}), doctest::Contains("give group=0"));
}

// Codes, scale and offset are those of mlx.core.quantize (mlx 0.32.4 on a processor, numbers and scales in bf16). The
// step of 4 bits, 3.875 / 15 = 0.258, becomes 2.375 / 9 = 0.264.
TEST_CASE("int4 and int8 in mlx's form have its codes, steps and ends") {
  Floats row;
  for (int k = 0; k < 32; ++k) row.push_back(static_cast<float>(k * 7 % 32 - 12) / 8 + static_cast<float>(k % 3) / 16);
  const auto check = [&](const char* method, float step, const std::vector<int>& codes) {
    Floats expected;
    for (const int code : codes) expected.push_back(static_cast<float>(code) * step + 2.375f);
    const auto codec = key_codecs(method, {{"group", "32"}, {"form", "mlx"}}, {coded_prompt({}, 32)}).front();
    CHECK(decoded(*codec, row, 32) == expected);
    CHECK(bytes_of(codec->footprint(10, 32)) == 10 * (method[3] == '4' ? 16 : 32) + 10 * 4);
  };
  check("int4", -0.263671875f,
        {15, 11, 8, 5, 1, 13, 10, 6, 3, 0, 12, 8, 5, 2, 13, 10, 7, 3, 0, 12, 9, 6, 2, 14, 11, 7, 4, 1, 13, 9, 6, 3});
  check("int8", -0.01519775390625f, {255, 193, 131, 82,  21,  222, 172, 111, 49,  0,   201, 140, 90,  29,  230, 181,
                                     119, 57,  8,   209, 148, 99,  37,  238, 189, 127, 66,  16,  218, 156, 107, 45});
  CHECK_THROWS_WITH(find_method("int4").bind(Settings{{"form", "mlx"}, {"group", "0"}}),
                    doctest::Contains("give group=64"));
  const MethodInfo& int4 = find_method("int4");  // mlx refuses heads of which a group is no part
  CHECK(int4.block(int4.bind(Settings{{"group", "128"}, {"form", "mlx"}})).channels == 128);
}

// The numbers are those of a transcription of vLLM's int4_per_token_head.py in PyTorch, in fp32.
TEST_CASE("int4 in vLLM's form rotates a token of a head with vLLM's signs, and has a zero point") {
  const auto round = [](Index d, auto number) {
    Floats row;
    for (int k = 0; k < d; ++k) row.push_back(number(k));
    const auto codec = key_codecs("int4", {{"group", "0"}, {"form", "vllm"}}, {coded_prompt({}, d)}).front();
    CHECK(bytes_of(codec->footprint(10, d)) == 10 * d / 2 + 10 * 4);  // the zero point is inside the step
    return decoded(*codec, row, d);
  };
  const auto close = [](float a, double b) { return std::fabs(a - b) < 1e-5; };
  const Floats short_row =
      round(16, [](int k) { return static_cast<float>(k * 5 % 16 - 6) / 4 + static_cast<float>(k % 3) / 8; });
  const double expected[] = {-1.487501, -0.070834, 1.345835,  2.337502, -0.212500, 1.062501,  2.054169, -0.637501,
                             0.920834,  1.770835,  -0.920834, 0.495834, 1.487501,  -1.062501, 0.354167, 1.204168};
  for (std::size_t k = 0; k < 16; ++k) CHECK(close(short_row[k], expected[k]));
  const Floats row = round(128, [](int k) { return static_cast<float>(k * 37 % 128 - 50) / 32; });
  CHECK(close(row[0], -1.494922));
  CHECK(close(row[64], 0.382422));
  CHECK(close(row[127], 1.286328));
  CHECK_THROWS_AS(round(80, [](int) { return 1.0f; }), Unavailable);
}

TEST_CASE("fp8 stores a byte a number, and its scales in fp32") {
  const std::vector<HeadPrompt> heads(2, coded_prompt(Floats(24, 1.0f), 12));
  const auto bytes = [&](const char* scale, std::size_t head) {
    return bytes_of(key_codecs("fp8", {{"scale", scale}}, heads)[head]->footprint(100, 12));
  };
  CHECK(bytes("one", 0) == 100 * 12);
  CHECK(bytes("head", 1) == 100 * 12 + 4);
  CHECK(bytes("tensor", 0) == 100 * 12 + 4);
  CHECK(bytes("tensor", 1) == 100 * 12);
  CHECK(bytes("token-head", 1) == 100 * 12 + 100 * 4);
}

TEST_CASE("a composition with fp8 sees the layer, and its heads together with scale=tensor only") {
  for (const char* name : {"snapkv", "bsm"}) {
    const MethodInfo both = compose(find_method(name), find_method("fp8"));
    CHECK(both.granularity == Granularity::layer);
    CHECK(both.independent_heads(both.bind(Settings{})));
    CHECK_FALSE(both.independent_heads(both.bind(Settings{{"fp8.scale", "tensor"}})));
  }
  CHECK(compose(find_method("snapkv"), find_method("int8")).granularity == Granularity::kv_head);
  const MethodInfo planned = compose(find_method("pyramidkv"), find_method("fp8"));
  CHECK(planned.granularity == Granularity::model);
  // The heads of chelsea affect each other with its default parameters, whatever stores them.
  const MethodInfo merged = compose(find_method("chelsea"), find_method("int8"));
  const MethodInfo& chelsea = find_method("chelsea");
  CHECK(merged.independent_heads(merged.bind(Settings{})) == chelsea.independent_heads(chelsea.bind(Settings{})));
}

// y = H x / sqrt(32) is what is rounded, so x = H y / sqrt(32). With 3 bits the middles are odd eighths: 0.5 begins the
// part from 0.5 to 0.75, -0.01 is in that below 0, and 1, the largest number, is decoded to 7/8. 100 times that in f16.
TEST_CASE("int[form=exl3] rounds turned blocks to the middles of equal parts") {
  const auto turned = [](const Floats& y) {
    Floats x(32, 0.0f);
    for (unsigned j = 0; j < 32; ++j) {
      for (unsigned k = 0; k < 32; ++k) x[j] += (std::popcount(j & k) % 2 == 1 ? -y[k] : y[k]) / std::sqrt(32.0f);
    }
    return x;
  };
  Floats y(32, 30.0f), expected(32, 37.5f);
  y[0] = 100, y[1] = -1, y[2] = 50.01f, y[3] = -49.99f, y[4] = -100;
  expected[0] = 87.5f, expected[1] = -12.5f, expected[2] = 62.5f, expected[3] = -37.5f, expected[4] = -87.5f;
  const auto codec = key_codecs("int", {{"form", "exl3"}, {"bits", "3"}}, {coded_prompt({}, 32)}).front();
  const Floats got = decoded(*codec, turned(y), 32), want = turned(expected);
  for (std::size_t j = 0; j < 32; ++j) CHECK(got[j] == doctest::Approx(want[j]).epsilon(1e-4).scale(10));
  CHECK(decoded(*codec, Floats(32, 0.0f), 32) == Floats(32, 0.0f));
  CHECK(bytes_of(codec->footprint(10, 64)) == 10 * (64 * 3 / 8 + 2 * 2));
  CHECK_THROWS_WITH(find_method("int").bind(Settings{{"form", "exl3"}, {"group", "64"}}),
                    doctest::Contains("groups of 32 channels"));
}
