// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <thread>

#include <doctest/doctest.h>
#include <kvbench/core/error.hpp>
#include <kvbench/trace/sha256.hpp>

#include <unit/trace/sample.hpp>

namespace kvbench::trace::test {
namespace {

std::string bytes_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// Chunks are known of files alone.
void check_same(TraceInfo read, const TraceInfo& written) {
  read.largest_chunk = written.largest_chunk;
  CHECK(read == written);
}

void check_arrays(const Reader& reader) {
  for_each_head(reader.info(), [&](std::size_t p, std::size_t l, Array array, std::int64_t head, const Shape& shape) {
    const PromptInfo& prompt = reader.info().prompts[p];
    CHECK(reader.read_head(prompt, prompt.layers[l], array, head) == sample_slab(shape, p, l, array, head));
  });
}

TEST_CASE("written traces are read back, for every element type, compressed or not") {
  const TempFolder folder;
  for (const Dtype dtype : {Dtype::f32, Dtype::f16, Dtype::bf16}) {
    for (const bool compress : {false, true}) {
      CAPTURE(name_of(dtype));
      CAPTURE(compress);
      const std::string path = folder / "t.h5";
      write_sample(path, sample_info(dtype), compress);

      const Reader reader(path);

      check_same(reader.info(), sample_info(dtype));
      check_arrays(reader);
    }
  }
}

TEST_CASE("the layers that have a cache are read back; plans over layers count these alone") {
  const TempFolder folder;
  TraceInfo info = sample_info();
  CHECK(info.num_caches() == 5);
  CHECK(info.depth_of(3) == 3);
  CHECK(info.layers_behind(1) == 5);
  info.cache_layers = {0, 3};
  CHECK(info.num_caches() == 2);
  CHECK(info.depth_of(3) == 1);
  CHECK(info.layers_behind(2) == 2);
  CHECK(info.layers_behind(1) == 0);

  write_sample(folder / "t.h5", info, false);

  check_same(Reader(folder / "t.h5").info(), info);
  for (const std::vector<std::int32_t>& wrong : {std::vector{3, 0}, std::vector{0, 5}, std::vector{0, 2}}) {
    info.cache_layers = wrong;
    CHECK_THROWS_WITH_AS(write_sample(folder / "u.h5", info, false), doctest::Contains("cache_layers"), Error);
  }
}

TEST_CASE("rows arrive in any order and any pieces") {
  const TempFolder folder;
  const TraceInfo info = sample_info();
  Writer writer(folder / "t.h5", info);
  for_each_head(info, [&](std::size_t p, std::size_t l, Array array, std::int64_t head, const Shape& shape) {
    const std::vector<float> slab = sample_slab(shape, p, l, array, head);
    const bool probes = array == Array::probes || array == Array::probe_scales;
    const std::int64_t piece = probes ? info.prompts[p].probes->tokens : 1;  // rows of a probe come together
    for (std::int64_t row = shape.rows - piece; row >= 0; row -= piece) {
      writer.write_rows(p, l, array, head, row,
                        std::span(slab).subspan(static_cast<std::size_t>(row * shape.dim),
                                                static_cast<std::size_t>(piece * shape.dim)));
    }
  });
  writer.commit();

  check_arrays(Reader(folder / "t.h5"));
}

TEST_CASE("prompts come in numeric, then alphabetic order") {
  const TempFolder folder;
  TraceInfo info = sample_info();
  const PromptInfo prompt = info.prompts[0];
  info.prompts.clear();
  for (const char* id : {"b", "10", "9", "a", "01"}) {
    info.prompts.push_back(prompt);
    info.prompts.back().id = id;
  }
  write_sample(folder / "t.h5", info);

  std::vector<std::string> ids;
  const Reader reader(folder / "t.h5");
  for (const PromptInfo& read : reader.info().prompts) ids.push_back(read.id);

  CHECK(ids == std::vector<std::string>{"9", "10", "01", "a", "b"});
}

TEST_CASE("equal content gives equal bytes, and SOURCE_DATE_EPOCH fixes the time") {
  const TempFolder folder;
  TraceInfo info = sample_info();
  info.created.clear();
  ::setenv("SOURCE_DATE_EPOCH", "86400", 1);
  write_sample(folder / "a.h5", info);
  write_sample(folder / "b.h5", info);
  ::unsetenv("SOURCE_DATE_EPOCH");

  CHECK(Reader(folder / "a.h5").info().created == "1970-01-02T00:00:00Z");
  CHECK(bytes_of(folder / "a.h5") == bytes_of(folder / "b.h5"));
}

TEST_CASE("sha256 is the digest of the bytes of the file") {
  const TempFolder folder;
  write_sample(folder / "a.h5");
  const std::string before = Reader(folder / "a.h5").sha256();
  std::ofstream(folder / "a.h5", std::ios::binary | std::ios::app)
      << '\0';  // HDF5 allows bytes after the end of its data

  CHECK(before.size() == 64);
  CHECK(before.find_first_not_of("0123456789abcdef") == std::string::npos);
  CHECK(Reader(folder / "a.h5").sha256() != before);
}

TEST_CASE("several threads may read at once") {
  const TempFolder folder;
  write_sample(folder / "t.h5");
  const Reader reader(folder / "t.h5");
  const PromptInfo& prompt = reader.info().prompts[0];
  const std::vector<float> expected = reader.read_head(prompt, prompt.layers[0], Array::keys, 1);
  std::vector<int> equal(4);
  std::vector<std::thread> threads;
  for (int& result : equal) {
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) result += reader.read_head(prompt, prompt.layers[0], Array::keys, 1) == expected;
    });
  }
  for (std::thread& thread : threads) thread.join();

  CHECK(equal == std::vector<int>(4, 50));
}

TEST_CASE("values that do not fit the element type are refused with their position") {
  const TempFolder folder;
  const auto write = [&](Dtype dtype, float value) {
    return message_of<Error>([&] {
      Writer writer(folder / "t.h5", sample_info(dtype));
      std::vector<float> slab(28);
      slab[5] = value;
      writer.write_rows(0, 0, Array::keys, 1, 0, slab);
    });
  };
  CHECK(
      contains(write(Dtype::f16, 1e5F), "/prompts/0/layers/0/keys: head 1, row 1, column 1: 100000 does not fit f16"));
  CHECK(contains(write(Dtype::bf16, std::numeric_limits<float>::max()), "does not fit bf16"));
  CHECK(contains(write(Dtype::f32, std::numeric_limits<float>::quiet_NaN()), "is not finite"));
  CHECK(contains(write(Dtype::f16, -std::numeric_limits<float>::infinity()), "is not finite"));
  CHECK(write(Dtype::f16, 65504) == "");
  // From 2^-17 = 7.6294e-6 on f16 has the eight digits of bf16, as its steps are 2^-24. Row 1 holds the number alone;
  // row 0 is zero, as dead heads.
  for (const float lost : {1e-9F, -7.6e-6F}) {
    CHECK(contains(write(Dtype::f16, lost),
                   "keys: head 1, row 1: all its numbers are below 7.6e-06, where f16 loses digits; use bf16"));
    CHECK(write(Dtype::bf16, lost) == "");
    CHECK(write(Dtype::f32, lost) == "");
  }
  CHECK(contains(write(Dtype::bf16, 1e-39F), "bf16 loses digits; use f32"));
  CHECK(write(Dtype::f16, 7.63e-6F) == "");
}

TEST_CASE("reading a missing array or head is an error that names it") {
  const TempFolder folder;
  write_sample(folder / "t.h5");
  const Reader reader(folder / "t.h5");
  const PromptInfo& prompt = reader.info().prompts[0];
  const auto read = [&](Array array, std::int64_t head) {
    return message_of<Error>([&] { reader.read_head(prompt, prompt.layers[0], array, head); });
  };
  CHECK(contains(read(Array::keys, 2), "/prompts/0/layers/0/keys: there is no head 2 of 2"));
  CHECK(contains(read(Array::keys, -1), "there is no head -1"));
  CHECK(contains(read(Array::column_sums, 0), "the trace does not hold this array"));
}

TEST_CASE("the digest in PATH.sha256 is used unless it is older, of another file, or invalid") {
  const TempFolder folder;
  const std::string path = folder / "a.h5", side = path + ".sha256";
  std::ofstream(path) << "bytes";
  const std::string digest(64, '5');
  const auto states = [&](const std::string& text) {
    std::ofstream(side) << text;
    return stated_sha256(path);
  };
  CHECK(stated_sha256(path).empty());
  CHECK(states(digest + "  a.h5\n") == digest);
  CHECK(states(digest + " *some/folder/a.h5\n") == digest);
  CHECK(states(digest + "  b.h5\n").empty());
  CHECK(states(digest.substr(1) + "  a.h5\n").empty());
  CHECK(states("z" + digest.substr(1) + "  a.h5\n").empty());
  CHECK(states("").empty());
  CHECK(states(digest + "  a.h5\n") == digest);
  std::filesystem::last_write_time(side, std::filesystem::last_write_time(path) - std::chrono::seconds(1));
  CHECK(stated_sha256(path).empty());
}

}  // namespace
}  // namespace kvbench::trace::test
