// SPDX-License-Identifier: Apache-2.0
// Every rule of the schema, broken once: a sentence that names the place, never a crash and never a silent reading.
#include <fstream>
#include <functional>
#include <iterator>
#include <limits>
#include <random>

#include <sys/stat.h>
#include <unistd.h>

#include <doctest/doctest.h>
#include <kvbench/core/error.hpp>

#include "unit/trace/raw.hpp"
#include "unit/trace/sample.hpp"

namespace kvbench::trace::test {
namespace {

const char* const keys = "/prompts/0/layers/0/keys";
const char* const positions = "/prompts/0/layers/0/query_positions";

/// What Reader says about a good trace that `spoil` has changed; "" where it reads it.
std::string complaint(const std::function<void(RawFile&)>& spoil) {
  const TempFolder folder;
  write_sample(folder / "t.h5");
  {
    RawFile file(folder / "t.h5");
    REQUIRE(file.id() >= 0);
    spoil(file);
  }
  return message_of<Error>([&] { const Reader reader(folder / "t.h5"); });
}

std::string complaint_about_bytes(const std::string& bytes) {
  const TempFolder folder;
  std::ofstream(folder / "t.h5", std::ios::binary) << bytes;
  return message_of<Error>([&] { const Reader reader(folder / "t.h5"); });
}

std::string sample_bytes(Dtype dtype = Dtype::f32, bool compress = false) {
  const TempFolder folder;
  write_sample(folder / "t.h5", sample_info(dtype), compress);
  std::ifstream in(folder / "t.h5", std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// Opens and reads everything; true where that worked. Anything but Error and IoError leaves the test.
bool survives(const std::string& path) {
  try {
    const Reader reader(path);
    for_each_head(reader.info(), [&](std::size_t p, std::size_t l, Array array, std::int64_t head, const Shape&) {
      const PromptInfo& prompt = reader.info().prompts[p];
      reader.read_head(prompt, prompt.layers[l], array, head);
    });
    return true;
  } catch (const Error&) {
  } catch (const IoError&) {
  }
  return false;
}

TEST_CASE("an unchanged copy is read, with attributes of other integer, float and string types") {
  CHECK(complaint([](RawFile&) {}) == "");
  CHECK(complaint([](RawFile& f) {
          const std::uint8_t dim = 4;
          f.set("/", "head_dim", H5T_STD_U8LE, &dim);
          f.set("/", "value_dim", H5T_STD_I64LE, std::vector<std::int64_t>{3}.data(), {1});
          const float scale = 0.25F;
          f.set("/prompts/0/layers/0", "scale", H5T_IEEE_F32LE, &scale);
          f.set("/prompts/0/layers/0", "rope_theta", std::int64_t{10000});
          f.set("/", "rope_layout", std::string("half"));
          f.set("/", "kvbench_trace", std::string("1.7"));
          f.set("/", "something_new", std::string("ignored"));
        }) == "");
}

TEST_CASE("strings of variable length, as h5py writes them, in attributes and datasets") {
  const TempFolder folder;
  write_sample(folder / "t.h5");
  {
    const hid_t type = H5Tcopy(H5T_C_S1);
    H5Tset_size(type, H5T_VARIABLE);
    RawFile file(folder / "t.h5");
    const std::string text(6000, 'x');
    const char* pointer = text.c_str();
    file.replace("/prompts/10/text", type, {}, &pointer);
    file.set("/", "model", type, &pointer);
    H5Tclose(type);
  }
  const Reader reader(folder / "t.h5");
  CHECK(reader.info().prompts[1].text == std::string(6000, 'x'));
  CHECK(reader.info().model == std::string(6000, 'x'));
}

TEST_CASE("files that are no HDF5 files get a sentence each") {
  const TempFolder folder;
  const auto open = [&](const std::string& path) { return message_of<Error>([&] { const Reader reader(path); }); };
  CHECK(contains(open(folder / "none.h5"), "none.h5: no such file"));
  CHECK(contains(open(folder.path()), "is a directory"));
  ::mkfifo((folder / "pipe").c_str(), 0600);
  CHECK(contains(open(folder / "pipe"), "is no regular file"));
  CHECK(contains(complaint_about_bytes(""), "is empty"));
  CHECK(contains(complaint_about_bytes("# a text file, longer than the signature"), "is not an HDF5 file"));
  CHECK(contains(complaint_about_bytes(std::string("\x89HDF\r\n\x1a\n", 8)), "truncated after 8 bytes"));
}

TEST_CASE("a file without read permission says so") {
  const TempFolder folder;
  write_sample(folder / "t.h5");
  ::chmod((folder / "t.h5").c_str(), 0);
  ::chmod(folder.path().c_str(), 0755);
  const bool root = ::geteuid() == 0;  // root may read anything: become somebody else
  if (root) REQUIRE(::seteuid(65534) == 0);
  const std::string message = message_of<Error>([&] { const Reader reader(folder / "t.h5"); });
  if (root) REQUIRE(::seteuid(0) == 0);
  CHECK(contains(message, "permission denied"));
}

TEST_CASE("versions") {
  CHECK(contains(complaint([](RawFile& f) { f.remove_attribute("/", "kvbench_trace"); }), "no trace"));
  CHECK(contains(complaint([](RawFile& f) { f.set("/", "kvbench_trace", std::string("2.0")); }),
                 "2.0 is newer than this kvbench"));
  CHECK(contains(complaint([](RawFile& f) { f.set("/", "kvbench_trace", std::string("0.9")); }), "never released"));
  CHECK(contains(complaint([](RawFile& f) { f.set("/", "kvbench_trace", std::string("one")); }), "expected a version"));
  CHECK(contains(complaint([](RawFile& f) { f.set("/", "kvbench_trace", std::int64_t{1}); }), "is not a string"));
}

TEST_CASE("every required attribute is missed by name") {
  for (const char* name : {"model", "num_layers", "num_query_heads", "num_kv_heads", "head_dim", "value_dim", "rope_type",
                           "rope_layout", "dtype"}) {
    CAPTURE(name);
    CHECK(contains(complaint([&](RawFile& f) { f.remove_attribute("/", name); }), fmt::format("'{}' is missing", name)));
  }
  for (const char* name : {"name", "num_tokens", "prompt_tokens"}) {
    CAPTURE(name);
    CHECK(contains(complaint([&](RawFile& f) { f.remove_attribute("/prompts/10", name); }),
                   fmt::format("/prompts/10: attribute '{}' is missing", name)));
  }
  for (const char* name : {"window", "rope_theta", "scale", "softcap"}) {
    CAPTURE(name);
    CHECK(contains(complaint([&](RawFile& f) { f.remove_attribute("/prompts/0/layers/3", name); }),
                   fmt::format("/prompts/0/layers/3: attribute '{}' is missing", name)));
  }
  CHECK(contains(complaint([](RawFile& f) { f.remove_attribute("/prompts/0/layers/3/column_sums", "column_sums_end"); }),
                 "column_sums: attribute 'column_sums_end' is missing"));
}

TEST_CASE("attributes of the wrong type or size") {
  CHECK(contains(complaint([](RawFile& f) { f.set("/", "head_dim", 4.0); }), "'head_dim' must be an integer"));
  CHECK(contains(complaint([](RawFile& f) { f.set("/", "head_dim", std::string("4")); }), "'head_dim' must be an integer"));
  CHECK(contains(complaint([](RawFile& f) { f.set("/", "model", 4.0); }), "'model' is not a string"));
  CHECK(contains(complaint([](RawFile& f) { f.set("/prompts/0/layers/0", "scale", std::string("1")); }),
                 "'scale' must be a number"));
  CHECK(contains(complaint([](RawFile& f) {
                   const std::vector<std::int64_t> two{4, 4};
                   f.set("/", "head_dim", H5T_STD_I64LE, two.data(), {2});
                 }),
                 "'head_dim' must hold one value"));
}

TEST_CASE("attributes that contradict each other or the schema") {
  const auto with = [](const char* object, const char* name, auto value) {
    return complaint([=](RawFile& f) { f.set(object, name, value); });
  };
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const char* const layer = "/prompts/0/layers/0";
  CHECK(contains(with("/", "num_kv_heads", std::int64_t{0}), "'num_kv_heads' is 0"));
  CHECK(contains(with("/", "num_query_heads", std::int64_t{-4}), "'num_query_heads' is -4"));
  CHECK(contains(with("/", "num_query_heads", std::int64_t{5}), "no multiple of num_kv_heads = 2"));
  CHECK(contains(with("/", "num_query_heads", std::int64_t{1} << 62), "which no model has"));
  CHECK(contains(with("/", "num_layers", std::int64_t{3}), "'3' is not a layer number below num_layers = 3"));
  CHECK(contains(with("/", "head_dim", std::int64_t{8}), "/keys: has shape [2, 7, 4], the attributes ask for [2, 7, 8]"));
  CHECK(contains(with("/", "rope_layout", std::string("sideways")), "must be 'half' or 'interleaved'"));
  CHECK(contains(with("/", "dtype", std::string("f64")), "must be f32, f16 or bf16"));
  CHECK(contains(with("/", "dtype", std::string("f16")), "/keys: its elements are not f16"));
  CHECK(contains(with("/prompts/0", "num_tokens", std::int64_t{8}), "'tokens' has 7 entries, attribute num_tokens says 8"));
  CHECK(contains(with("/prompts/0", "prompt_tokens", std::int64_t{8}), "prompt_tokens is 8"));
  CHECK(contains(with("/prompts/0", "prompt_tokens", std::int64_t{0}), "prompt_tokens is 0"));
  CHECK(contains(with("/prompts/10", "answer_end", std::int64_t{4}), "answer_start = 5 and answer_end = 4"));
  CHECK(contains(with("/prompts/10", "answer_end", std::int64_t{8}), "/prompts/10: answer_start"));
  CHECK(contains(with(layer, "window", std::int64_t{-1}), "'window' is -1"));
  CHECK(contains(with(layer, "scale", 0.0), "'scale' is 0"));
  CHECK(contains(with(layer, "scale", nan), "'scale' is nan"));
  CHECK(contains(with(layer, "softcap", -1.0), "'softcap' is -1"));
  CHECK(contains(with(layer, "rope_theta", nan), "'rope_theta' is nan"));
  CHECK(contains(with("/prompts/0/layers/3/column_sums", "column_sums_end", std::int64_t{8}),
                 "column_sums_end is 8, outside [1, 7]"));
  CHECK(contains(with("/prompts/0/layers/3/column_sums", "column_sums_end", std::int64_t{0}), "outside [1, 7]"));
}

TEST_CASE("datasets that are missing, of another type, shape or kind") {
  const std::vector<double> zeros(256);
  for (const char* path :
       {"/prompts/0/tokens", positions, keys, "/prompts/0/layers/3/values", "/prompts/10/layers/0/queries"}) {
    CAPTURE(path);
    CHECK(contains(complaint([&](RawFile& f) { f.remove(path); }), std::string(path) + ": dataset is missing"));
  }
  CHECK(contains(complaint([](RawFile& f) { f.remove("/prompts/0/layers"); }), "/prompts/0/layers: group is missing"));
  CHECK(contains(complaint([&](RawFile& f) { f.replace(keys, H5T_IEEE_F64LE, {2, 7, 4}, zeros.data()); }), "are not f32"));
  CHECK(contains(complaint([&](RawFile& f) { f.replace(keys, H5T_IEEE_F32BE, {2, 7, 4}, zeros.data()); }), "are not f32"));
  CHECK(contains(complaint([&](RawFile& f) {
                   f.replace(keys, H5T_IEEE_F32LE, {2, 6, 4}, zeros.data());
                 }),
                 "has shape [2, 6, 4]"));
  CHECK(contains(complaint([&](RawFile& f) { f.replace(keys, H5T_IEEE_F32LE, {56}, zeros.data()); }), "has shape [56]"));
  CHECK(
      contains(complaint([&](RawFile& f) { f.replace(positions, H5T_IEEE_F64LE, {3}, zeros.data()); }), "must hold integers"));
  CHECK(contains(complaint([&](RawFile& f) {
                   f.replace(positions, H5T_STD_I64LE, {1, 3}, zeros.data());
                 }),
                 "has 2 dimensions"));
  CHECK(contains(complaint([&](RawFile& f) { f.replace("/prompts/10/text", H5T_STD_I64LE, {}, zeros.data()); }),
                 "must hold a string"));
  CHECK(contains(complaint([&](RawFile& f) {
                   f.remove(keys);
                   H5Gclose(H5Gcreate2(f.id(), keys, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
                 }),
                 "keys: is not a dataset"));
  CHECK(contains(complaint([&](RawFile& f) { f.replace("/prompts/7", H5T_STD_I64LE, {1}, zeros.data()); }),
                 "/prompts/7: is not a group"));
  CHECK(contains(complaint([&](RawFile& f) {
                   H5Gclose(H5Gcreate2(f.id(), "/prompts/0/layers/first", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
                 }),
                 "'first' is not a layer number"));
}

TEST_CASE("positions and token ids") {
  const auto with = [](std::vector<std::int64_t> values) {
    return complaint([=](RawFile& f) { f.replace(positions, H5T_STD_I64LE, {values.size()}, values.data()); });
  };
  CHECK(contains(with({1, 5, 2}), "query_positions: entry 2 is 2 after 5; positions must increase"));
  CHECK(contains(with({1, 1, 2}), "entry 1 is 1 after 1"));
  CHECK(contains(with({1, 2, 7}), "entry 2 is 7, outside [0, 7)"));
  CHECK(contains(with({-1, 2, 3}), "entry 0 is -1, outside [0, 7)"));
  CHECK(contains(with({1, 2}), "queries: has shape [4, 3, 4], the attributes ask for [4, 2, 4]"));
  CHECK(contains(complaint([](RawFile& f) {
                   const std::vector<std::int64_t> ids{1, 2, 3, std::int64_t{1} << 31, 5, 6, 7};
                   f.replace("/prompts/0/tokens", H5T_STD_I64LE, {7}, ids.data());
                 }),
                 "tokens: entry 3 is 2147483648, which does not fit"));
}

TEST_CASE("empty traces") {
  CHECK(contains(complaint([](RawFile& f) {
                   f.remove("/prompts/0");
                   f.remove("/prompts/10");
                 }),
                 "the trace holds no prompt"));
  CHECK(contains(complaint([](RawFile& f) {
                   f.remove("/prompts/0/layers/0");
                   f.remove("/prompts/0/layers/3");
                 }),
                 "/prompts/0: no layers were recorded"));
  CHECK(contains(complaint([](RawFile& f) { f.replace(positions, H5T_STD_I64LE, {0}, nullptr); }), "no queries were recorded"));
}

TEST_CASE("huge dimensions are refused before anything is allocated") {
  const hsize_t huge = hsize_t{1} << 61;
  CHECK(contains(complaint([&](RawFile& f) { f.replace(positions, H5T_STD_I64LE, {huge / 8}, nullptr); }),
                 "more than a file of"));
  CHECK(contains(complaint([&](RawFile& f) { f.replace("/prompts/0/tokens", H5T_STD_I32LE, {hsize_t{1} << 40}, nullptr); }),
                 "tokens: claims 4398046511104 bytes"));
}

TEST_CASE("data that lie elsewhere, were never written or need an unknown filter") {
  const std::vector<float> zeros(56);
  const auto with = [&](const std::function<void(hid_t)>& choose, const void* data) {
    return complaint([&](RawFile& f) {
      const hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
      choose(creation);
      f.replace(keys, H5T_IEEE_F32LE, {2, 7, 4}, data, creation);
      H5Pclose(creation);
    });
  };
  const hsize_t chunk[] = {1, 7, 4};
  CHECK(contains(with([](hid_t p) { H5Pset_external(p, "/dev/zero", 0, 224); }, nullptr), "keys: lies in another file"));
  CHECK(contains(with(
                     [](hid_t p) {
                       const hsize_t dims[] = {2, 7, 4};
                       const hid_t space = H5Screate_simple(3, dims, nullptr);
                       H5Pset_virtual(p, space, "other.h5", "/keys", space);
                       H5Sclose(space);
                     },
                     nullptr),
                 "keys: lies in another file"));
  CHECK(contains(with([](hid_t p) { H5Pset_layout(p, H5D_COMPACT); }, zeros.data()), "stored in an unknown way"));
  CHECK(contains(with([](hid_t) {}, nullptr), "keys: was never written"));
  CHECK(contains(with([&](hid_t p) { H5Pset_chunk(p, 3, chunk); }, nullptr), "keys: 0 of 2 chunks were written"));
  CHECK(with([&](hid_t p) { H5Pset_chunk(p, 3, chunk); }, zeros.data()) == "");
  CHECK(contains(with(
                     [&](hid_t p) {
                       H5Pset_chunk(p, 3, chunk);
                       H5Pset_fletcher32(p);
                     },
                     zeros.data()),
                 "stored with HDF5 filter 3"));
}

TEST_CASE("links that lead elsewhere") {
  CHECK(contains(complaint([](RawFile& f) {
                   f.remove(keys);
                   H5Lcreate_external("/etc/passwd", "/keys", f.id(), keys, H5P_DEFAULT, H5P_DEFAULT);
                 }),
                 "keys: is a link to elsewhere"));
  CHECK(contains(complaint([](RawFile& f) { H5Lcreate_soft("/prompts/0", f.id(), "/prompts/5", H5P_DEFAULT, H5P_DEFAULT); }),
                 "/prompts/5: is a link to elsewhere"));
  CHECK(contains(complaint([](RawFile& f) {
                   f.remove(keys);
                   H5Lcreate_hard(f.id(), "/prompts/0/layers/3/keys", f.id(), keys, H5P_DEFAULT, H5P_DEFAULT);
                   f.remove("/prompts/10/layers/0");
                   H5Lcreate_hard(f.id(), "/prompts/0/layers/0", f.id(), "/prompts/10/layers/0", H5P_DEFAULT, H5P_DEFAULT);
                   for (int i = 11; i < 40; ++i) {
                     H5Lcreate_hard(f.id(), "/prompts/0", f.id(), fmt::format("/prompts/{}", i).c_str(), H5P_DEFAULT,
                                    H5P_DEFAULT);
                   }
                 }),
                 "claim more bytes than the file has"));
}

TEST_CASE("values that are not finite name head and index") {
  for (const float value : {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
    const TempFolder folder;
    write_sample(folder / "t.h5");
    {
      std::vector<float> spoilt(56);
      spoilt[28 + 4 * 5 + 2] = value;
      RawFile(folder / "t.h5").replace(keys, H5T_IEEE_F32LE, {2, 7, 4}, spoilt.data());
    }
    const Reader reader(folder / "t.h5");
    const PromptInfo& prompt = reader.info().prompts[0];
    const auto read = [&](std::int64_t head) {
      return message_of<Error>([&] { reader.read_head(prompt, prompt.layers[0], Array::keys, head); });
    };
    CHECK(read(0) == "");
    CHECK(contains(read(1), "/prompts/0/layers/0/keys: head 1, row 5, column 2 is " + std::string(value < 0 ? "-inf" : "nan")));
  }
}

TEST_CASE("a truncated file is refused at every length") {
  const std::string bytes = sample_bytes();
  const TempFolder folder;
  for (std::size_t length = 0; length < bytes.size(); length += length < 2048 ? 1 : 61) {
    CAPTURE(length);
    std::ofstream(folder / "t.h5", std::ios::binary | std::ios::trunc) << bytes.substr(0, length);
    CHECK_FALSE(survives(folder / "t.h5"));
  }
}

TEST_CASE("flipped bytes are read or refused, never worse") {
  std::mt19937 random(42);
  const TempFolder folder;
  for (const bool compress : {false, true}) {
    const std::string good = sample_bytes(Dtype::f16, compress);
    int refused = 0;
    for (int trial = 0; trial < 600; ++trial) {
      std::string bytes = good;
      const std::size_t flips = 1 + random() % 8;
      for (std::size_t i = 0; i < flips; ++i) bytes[random() % bytes.size()] ^= static_cast<char>(1 + random() % 255);
      std::ofstream(folder / "t.h5", std::ios::binary | std::ios::trunc) << bytes;
      refused += !survives(folder / "t.h5");
    }
    CHECK(refused > 100);  // the metadata carry checksums
  }
}

}  // namespace
}  // namespace kvbench::trace::test
