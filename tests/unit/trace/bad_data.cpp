// SPDX-License-Identifier: Apache-2.0
// Data that are stored elsewhere, are missing, or were damaged.
#include <limits>
#include <random>

#include <doctest/doctest.h>

#include <unit/trace/complaint.hpp>

namespace kvbench::trace::test {
namespace {

const char* const keys = "/prompts/0/layers/0/keys";
const char* const positions = "/prompts/0/layers/0/query_positions";

std::string sample_bytes(Dtype dtype = Dtype::f32, bool compress = false) {
  const TempFolder folder;
  write_sample(folder / "t.h5", sample_info(dtype), compress);
  std::ifstream in(folder / "t.h5", std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// Opens and reads everything; true where that succeeds. Exceptions other than Error and IoError are not caught.
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

TEST_CASE("huge dimensions are refused before anything is allocated") {
  const hsize_t huge = hsize_t{1} << 61;
  CHECK(contains(complaint([&](RawFile& f) { f.replace(positions, H5T_STD_I64LE, {huge / 8}, nullptr); }),
                 "more than a file of"));
  CHECK(contains(
      complaint([&](RawFile& f) { f.replace("/prompts/0/tokens", H5T_STD_I32LE, {hsize_t{1} << 40}, nullptr); }),
      "tokens: claims 4398046511104 bytes"));
}

TEST_CASE("data that are stored elsewhere, were never written or need an unknown filter are refused") {
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
  CHECK(contains(with([](hid_t p) { H5Pset_external(p, "/dev/zero", 0, 224); }, nullptr),
                 "keys: is stored in another file"));
  CHECK(contains(with(
                     [](hid_t p) {
                       const hsize_t dims[] = {2, 7, 4};
                       const hid_t space = H5Screate_simple(3, dims, nullptr);
                       H5Pset_virtual(p, space, "other.h5", "/keys", space);
                       H5Sclose(space);
                     },
                     nullptr),
                 "keys: is stored in another file"));
  CHECK(contains(with([](hid_t p) { H5Pset_layout(p, H5D_COMPACT); }, zeros.data()),
                 "has an unsupported storage layout"));
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

TEST_CASE("soft links and shared data are refused") {
  CHECK(contains(complaint([](RawFile& f) {
                   f.remove(keys);
                   H5Lcreate_external("/etc/passwd", "/keys", f.id(), keys, H5P_DEFAULT, H5P_DEFAULT);
                 }),
                 "keys: is a soft or external link"));
  CHECK(contains(
      complaint([](RawFile& f) { H5Lcreate_soft("/prompts/0", f.id(), "/prompts/5", H5P_DEFAULT, H5P_DEFAULT); }),
      "/prompts/5: is a soft or external link"));
  CHECK(contains(
      complaint([](RawFile& f) {
        f.remove(keys);
        H5Lcreate_hard(f.id(), "/prompts/0/layers/3/keys", f.id(), keys, H5P_DEFAULT, H5P_DEFAULT);
        f.remove("/prompts/10/layers/0");
        H5Lcreate_hard(f.id(), "/prompts/0/layers/0", f.id(), "/prompts/10/layers/0", H5P_DEFAULT, H5P_DEFAULT);
        for (int i = 11; i < 40; ++i) {
          H5Lcreate_hard(f.id(), "/prompts/0", f.id(), fmt::format("/prompts/{}", i).c_str(), H5P_DEFAULT, H5P_DEFAULT);
        }
      }),
      "claim more bytes than the file has"));
}

TEST_CASE("values that are not finite are refused with head and index") {
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
    CHECK(contains(read(1),
                   "/prompts/0/layers/0/keys: head 1, row 5, column 2 is " + std::string(value < 0 ? "-inf" : "nan")));
  }
}

TEST_CASE("sums of attention weights are not negative") {
  const TempFolder folder;
  write_sample(folder / "t.h5");
  {
    std::vector<float> spoilt(4 * 7);
    spoilt[2 * 7 + 3] = -1e-3F;
    RawFile(folder / "t.h5").replace("/prompts/0/layers/3/column_sums", H5T_IEEE_F32LE, {4, 7}, spoilt.data());
    RawFile(folder / "t.h5").set("/prompts/0/layers/3/column_sums", "column_sums_end", std::int64_t{4});
  }
  const Reader reader(folder / "t.h5");
  const PromptInfo& prompt = reader.info().prompts[0];
  const auto read = [&](std::int64_t head) {
    return message_of<Error>([&] { reader.read_head(prompt, prompt.layers[1], Array::column_sums, head); });
  };
  CHECK(read(1) == "");
  CHECK(contains(read(2), "/prompts/0/layers/3/column_sums: head 2, entry 3 is -0.001"));
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

TEST_CASE("files with flipped bytes are read or refused, and never crash the reader") {
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
    CHECK(refused > 100);  // the metadata have checksums
  }
}

}  // namespace
}  // namespace kvbench::trace::test
