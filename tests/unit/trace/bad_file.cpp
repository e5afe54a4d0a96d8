// SPDX-License-Identifier: Apache-2.0
// Violates every rule of the schema once: each gives a message that names the place, never a crash or a wrong result.
#include <limits>

#include <sys/stat.h>
#include <unistd.h>

#include <doctest/doctest.h>

#include <unit/trace/complaint.hpp>

namespace kvbench::trace::test {
namespace {

const char* const keys = "/prompts/0/layers/0/keys";
const char* const positions = "/prompts/0/layers/0/query_positions";

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

TEST_CASE("files that are not HDF5 files are refused with a specific message") {
  const TempFolder folder;
  const auto open = [&](const std::string& path) { return message_of<Error>([&] { const Reader reader(path); }); };
  CHECK(contains(open(folder / "none.h5"), "none.h5: no such file"));
  CHECK(contains(open(folder.path()), "is a directory"));
  ::mkfifo((folder / "pipe").c_str(), 0600);
  CHECK(contains(open(folder / "pipe"), "is not a regular file"));
  CHECK(contains(complaint_about_bytes(""), "is empty"));
  CHECK(contains(complaint_about_bytes("# a text file, longer than the signature"), "is not an HDF5 file"));
  CHECK(contains(complaint_about_bytes(std::string("\x89HDF\r\n\x1a\n", 8)), "truncated after 8 bytes"));
}

TEST_CASE("a file without read permission is refused") {
  const TempFolder folder;
  write_sample(folder / "t.h5");
  ::chmod((folder / "t.h5").c_str(), 0);
  ::chmod(folder.path().c_str(), 0755);
  const bool root = ::geteuid() == 0;  // root may read anything: become another user
  if (root) REQUIRE(::seteuid(65534) == 0);
  const std::string message = message_of<Error>([&] { const Reader reader(folder / "t.h5"); });
  if (root) REQUIRE(::seteuid(0) == 0);
  CHECK(contains(message, "permission denied"));
}

TEST_CASE("versions") {
  CHECK(contains(complaint([](RawFile& f) { f.remove_attribute("/", "kvbench_trace"); }), "not a trace"));
  CHECK(contains(complaint([](RawFile& f) { f.set("/", "kvbench_trace", std::string("2.0")); }),
                 "2.0 is newer than this kvbench"));
  CHECK(contains(complaint([](RawFile& f) { f.set("/", "kvbench_trace", std::string("0.9")); }), "never released"));
  CHECK(contains(complaint([](RawFile& f) { f.set("/", "kvbench_trace", std::string("one")); }), "expected a version"));
  CHECK(contains(complaint([](RawFile& f) { f.set("/", "kvbench_trace", std::int64_t{1}); }), "is not a string"));
}

TEST_CASE("a missing required attribute is named") {
  for (const char* name : {"model", "num_layers", "num_query_heads", "num_kv_heads", "head_dim", "value_dim",
                           "rope_type", "rope_layout", "dtype"}) {
    CAPTURE(name);
    CHECK(
        contains(complaint([&](RawFile& f) { f.remove_attribute("/", name); }), fmt::format("'{}' is missing", name)));
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
  CHECK(
      contains(complaint([](RawFile& f) { f.remove_attribute("/prompts/0/layers/3/column_sums", "column_sums_end"); }),
               "column_sums: attribute 'column_sums_end' is missing"));
}

TEST_CASE("attributes of the wrong type or size") {
  CHECK(contains(complaint([](RawFile& f) { f.set("/", "head_dim", 4.0); }), "'head_dim' must be an integer"));
  CHECK(contains(complaint([](RawFile& f) { f.set("/", "head_dim", std::string("4")); }),
                 "'head_dim' must be an integer"));
  CHECK(contains(complaint([](RawFile& f) { f.set("/", "model", 4.0); }), "'model' is not a string"));
  CHECK(contains(complaint([](RawFile& f) { f.set("/prompts/0/layers/0", "scale", std::string("1")); }),
                 "'scale' must be a number"));
  CHECK(contains(complaint([](RawFile& f) {
                   const std::vector<std::int64_t> two{4, 4};
                   f.set("/", "head_dim", H5T_STD_I64LE, two.data(), {2});
                 }),
                 "'head_dim' must be one value"));
}

TEST_CASE("attributes that contradict each other or the schema") {
  const auto with = [](const char* object, const char* name, auto value) {
    return complaint([=](RawFile& f) { f.set(object, name, value); });
  };
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const char* const layer = "/prompts/0/layers/0";
  CHECK(contains(with("/", "num_kv_heads", std::int64_t{0}), "'num_kv_heads' is 0"));
  CHECK(contains(with("/", "num_query_heads", std::int64_t{-4}), "'num_query_heads' is -4"));
  CHECK(contains(with("/", "num_query_heads", std::int64_t{5}), "not a multiple of num_kv_heads = 2"));
  CHECK(contains(with("/", "num_query_heads", std::int64_t{1} << 62), "which no model has"));
  CHECK(contains(with("/", "num_layers", std::int64_t{3}), "'3' is not a layer number below num_layers = 3"));
  CHECK(contains(with("/", "head_dim", std::int64_t{8}),
                 "/keys: has the shape [2, 7, 4], but the attributes require [2, 7, 8]"));
  CHECK(contains(with("/", "rope_layout", std::string("sideways")), "must be 'half' or 'interleaved'"));
  CHECK(contains(with("/", "dtype", std::string("f64")), "must be f32, f16 or bf16"));
  CHECK(contains(with("/", "dtype", std::string("f16")), "/keys: its elements are not f16"));
  CHECK(contains(with("/prompts/0", "num_tokens", std::int64_t{8}),
                 "'tokens' has 7 entries, but attribute num_tokens is 8"));
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

TEST_CASE("datasets that are missing or have another type, shape or kind are refused") {
  const std::vector<double> zeros(256);
  for (const char* path :
       {"/prompts/0/tokens", positions, keys, "/prompts/0/layers/3/values", "/prompts/10/layers/0/queries"}) {
    CAPTURE(path);
    CHECK(contains(complaint([&](RawFile& f) { f.remove(path); }), std::string(path) + ": dataset is missing"));
  }
  CHECK(contains(complaint([](RawFile& f) { f.remove("/prompts/0/layers"); }), "/prompts/0/layers: group is missing"));
  CHECK(contains(complaint([&](RawFile& f) {
                   f.replace(keys, H5T_IEEE_F64LE, {2, 7, 4}, zeros.data());
                 }),
                 "are not f32"));
  CHECK(contains(complaint([&](RawFile& f) {
                   f.replace(keys, H5T_IEEE_F32BE, {2, 7, 4}, zeros.data());
                 }),
                 "are not f32"));
  CHECK(contains(complaint([&](RawFile& f) {
                   f.replace(keys, H5T_IEEE_F32LE, {2, 6, 4}, zeros.data());
                 }),
                 "has the shape [2, 6, 4]"));
  CHECK(contains(complaint([&](RawFile& f) { f.replace(keys, H5T_IEEE_F32LE, {56}, zeros.data()); }),
                 "has the shape [56]"));
  CHECK(contains(complaint([&](RawFile& f) { f.replace(positions, H5T_IEEE_F64LE, {3}, zeros.data()); }),
                 "must have integer elements"));
  CHECK(contains(complaint([&](RawFile& f) {
                   f.replace(positions, H5T_STD_I64LE, {1, 3}, zeros.data());
                 }),
                 "has 2 dimensions"));
  CHECK(contains(complaint([&](RawFile& f) { f.replace("/prompts/10/text", H5T_STD_I64LE, {}, zeros.data()); }),
                 "must be a string"));
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
  CHECK(contains(complaint([](RawFile& f) { f.replace("/cache_layers", H5T_STD_I32LE, {0}, nullptr); }),
                 "'cache_layers' is empty"));
  const auto with = [](std::vector<std::int64_t> values) {
    return complaint([=](RawFile& f) { f.replace(positions, H5T_STD_I64LE, {values.size()}, values.data()); });
  };
  CHECK(contains(with({1, 5, 2}), "query_positions: entry 2 is 2 after 5; positions must increase"));
  CHECK(contains(with({1, 1, 2}), "entry 1 is 1 after 1"));
  CHECK(contains(with({1, 2, 7}), "entry 2 is 7, outside [0, 7)"));
  CHECK(contains(with({-1, 2, 3}), "entry 0 is -1, outside [0, 7)"));
  CHECK(contains(with({1, 2}), "queries: has the shape [4, 3, 4], but the attributes require [4, 2, 4]"));
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
  CHECK(contains(complaint([](RawFile& f) { f.replace(positions, H5T_STD_I64LE, {0}, nullptr); }),
                 "no queries were recorded"));
}

}  // namespace
}  // namespace kvbench::trace::test
