// SPDX-License-Identifier: Apache-2.0
// Probes, sketches and residual norms: how they are stored, and what is refused.
#include <cmath>
#include <limits>

#include <doctest/doctest.h>
#include <kvbench/trace/synth.hpp>

#include <unit/trace/complaint.hpp>

namespace kvbench::trace::test {
namespace {

const std::string prompt = "/prompts/10", layer = prompt + "/layers/3";

/// What reading an array of layer 3 of prompt 10 complains of after `spoil`.
std::string reading(Array array, const std::function<void(RawFile&)>& spoil) {
  const TempFolder folder;
  write_sample(folder / "t.h5");
  {
    RawFile file(folder / "t.h5");
    spoil(file);
  }
  const Reader reader(folder / "t.h5");
  const PromptInfo& read = reader.info().prompts[1];
  return message_of<Error>([&] { reader.read_head(read, read.layers[1], array, 0); });
}

TEST_CASE("a row of probes is rounded to 127 steps of its largest value") {
  const TempFolder folder;
  const TraceInfo info = sample_info();
  Writer writer(folder / "t.h5", info);
  fill(writer, info);
  std::vector<float> rows(3 * 2 * 3);                  // 3 probes of 2 tokens, 3 channels
  rows[0] = 1e-9F, rows[1] = -1e-9F / 3, rows[2] = 0;  // far below the smallest number of f16
  rows[3] = 1e9F, rows[4] = 1e9F / 254.1F, rows[5] = -1e9F / 253.9F;
  writer.write_rows(1, 1, Array::probes, 2, 0, rows);
  writer.commit();

  const Reader reader(folder / "t.h5");
  const PromptInfo& read = reader.info().prompts[1];
  const std::vector<float> got = reader.read_head(read, read.layers[1], Array::probes, 2);
  REQUIRE(got.size() == rows.size());
  CHECK(got[0] == doctest::Approx(1e-9).epsilon(1e-6));
  CHECK(got[1] == doctest::Approx(-1e-9 * 42 / 127).epsilon(1e-6));  // 127 / 3 = 42.3
  CHECK(got[3] == doctest::Approx(1e9).epsilon(1e-6));
  CHECK(got[4] == 0);                                                               // less than half a step
  CHECK(got[5] == doctest::Approx(-1e9 / 127).epsilon(1e-6));                       // more than half a step
  CHECK(std::vector<float>(got.begin() + 6, got.end()) == std::vector<float>(12));  // rows of zeros
}

TEST_CASE("rows of a probe are written together") {
  const TempFolder folder;
  Writer writer(folder / "t.h5", sample_info());
  const std::vector<float> one(3);
  CHECK_THROWS_WITH_AS(writer.write_rows(1, 1, Array::probes, 0, 0, one), doctest::Contains("do not fit the shape"),
                       Error);
}

TEST_CASE("probes whose numbers contradict tokens and queries are refused") {
  const auto with = [](const char* name, std::int64_t value) {
    return complaint([&](RawFile& f) { f.set(prompt.c_str(), name, value); });
  };
  CHECK(contains(with("num_probes", 0), "/prompts/10: num_probes is 0; it must be from 1 to 512"));
  CHECK(contains(with("num_probes", std::int64_t{1} << 60), "it must be from 1 to 512"));
  CHECK(contains(with("num_probes", 4), "probes: has the shape [4, 3, 2, 3], but the attributes require [4, 4, 2, 3]"));
  CHECK(contains(with("scored_tokens", 4), "it must be from 1 to 3, the number of tokens after the context"));
  CHECK(contains(with("scored_tokens", 0), "scored_tokens is 0"));
  CHECK(contains(with("scored_tokens", 3),
                 "they are of the 3 tokens from position 4 on, of which 2 have a query; record the queries of all"));
  const auto without = [](const char* name) {
    return complaint([&](RawFile& f) { f.remove_attribute(prompt.c_str(), name); });
  };
  CHECK(contains(without("num_probes"), "its layers have probes, but attribute 'num_probes' is missing"));
  CHECK(contains(without("scored_tokens"), "attribute 'scored_tokens' is missing"));
  CHECK(contains(without("probe_seed"), "attribute 'probe_seed' is missing"));
  CHECK(without("evaluated_in") == "");
  CHECK(complaint([](RawFile& f) {
          f.remove((layer + "/probes").c_str());
          f.remove((layer + "/probe_scales").c_str());
        }) == "");  // a layer may lack them
  CHECK(contains(complaint([](RawFile& f) { f.remove((layer + "/probe_scales").c_str()); }), "probe_scales"));
}

TEST_CASE("probes and sketches of another type or shape are refused") {
  const std::vector<float> zeros(4 * 3 * 2 * 3);
  CHECK(contains(complaint([&](RawFile& f) {
                   f.replace((layer + "/probes").c_str(), H5T_IEEE_F32LE, {4, 3, 2, 3}, zeros.data());
                 }),
                 "probes: its elements are not i8"));
  const auto sketch = [&](std::vector<hsize_t> dims, bool seed) {
    return complaint([&](RawFile& f) {
      const std::string at = layer + "/output_sketch";
      f.replace(at.c_str(), H5T_IEEE_F32LE, std::move(dims), zeros.data());
      if (seed) f.set(at.c_str(), "seed", std::int64_t{1});
    });
  };
  CHECK(sketch({4, 3, 6}, true) == "");
  CHECK(contains(sketch({4, 3, 6}, false), "output_sketch: attribute 'seed' is missing"));
  CHECK(contains(sketch({12, 6}, true), "it must have three dimensions"));
  CHECK(contains(sketch({4, 2, 9}, true), "output_sketch: has the shape [4, 2, 9], but the attributes require [4, 3"));
}

TEST_CASE("scales below 0, norms of 0 and numbers that are not finite are refused") {
  const auto norms = [](float value) {
    return reading(Array::residual_norm, [&](RawFile& f) {
      const std::vector<float> values{1, value, 1};
      f.replace((layer + "/residual_norm").c_str(), H5T_IEEE_F32LE, {3}, values.data());
    });
  };
  CHECK(norms(0.5F) == "");
  CHECK(contains(norms(0), "residual_norm: head 0, entry 1 is 0; the norm of a residual stream is above 0"));
  CHECK(contains(norms(std::numeric_limits<float>::quiet_NaN()), "residual_norm: head 0, row 1, column 0 is nan"));
  const auto scales = [](float value) {
    return reading(Array::probes, [&](RawFile& f) {
      std::vector<float> values(4 * 3 * 2, 1);
      values[3] = value;
      f.replace((layer + "/probe_scales").c_str(), H5T_IEEE_F32LE, {4, 3, 2}, values.data());
    });
  };
  CHECK(scales(2) == "");
  CHECK(contains(scales(-1), "probe_scales: head 0, entry 3 is -1; a scale is not negative"));
  CHECK(contains(scales(std::numeric_limits<float>::infinity()), "probe_scales: head 0, row 3, column 0 is inf"));
}

TEST_CASE("synthetic probes are standard normal, and sketches keep norms") {
  const TempFolder folder;
  SynthOptions options{.num_tokens = 96,
                       .prompt_tokens = 64,
                       .num_queries = 40,
                       .layers = 1,
                       .query_heads = 2,
                       .kv_heads = 1,
                       .head_dim = 4,
                       .value_dim = 8,
                       .probes = 20};
  synthesize(folder / "t.h5", options);
  const Reader reader(folder / "t.h5");
  const PromptInfo& read = reader.info().prompts[0];
  CHECK(read.probes == Probes{20, 32, 0, "synthetic"});
  const std::vector<float> probes = reader.read_head(read, read.layers[0], Array::probes, 1);
  REQUIRE(probes.size() == 20 * 32 * 8);
  double sum = 0, squares = 0;
  for (const float x : probes) sum += x, squares += x * x;
  const auto count = static_cast<double>(probes.size());
  CHECK(std::fabs(sum / count) < 4 / std::sqrt(count));
  CHECK(std::fabs(squares / count - 1) < 4 * std::sqrt(2 / count));
  const std::vector<float> sketch = reader.read_head(read, read.layers[0], Array::output_sketch, 0);
  REQUIRE(sketch.size() == 8 * 64);
  squares = 0;
  for (const float x : sketch) squares += x * x;
  CHECK(squares / 8 == doctest::Approx(1).epsilon(4 * std::sqrt(2.0 / 512)));
  CHECK(reader.read_head(read, read.layers[0], Array::residual_norm, 0) == std::vector<float>(40, 16));

  const auto complaint = [&] { return message_of<Error>([&] { synthesize(folder / "u.h5", options); }); };
  options.num_queries = 31;
  CHECK(contains(complaint(), "`probes` are of the 32 tokens after the context, and there are 31 queries"));
  options.probes = 513;
  CHECK(contains(complaint(), "`probes` is 513"));
}

}  // namespace
}  // namespace kvbench::trace::test
