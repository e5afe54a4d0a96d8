// SPDX-License-Identifier: Apache-2.0
// Chunks that do not hold what they claim, names, locks, damaged attributes, and files that change while they are open.
#include <filesystem>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <doctest/doctest.h>

#include "unit/trace/complaint.hpp"

namespace kvbench::trace::test {
namespace {

const char* const keys = "/prompts/0/layers/0/keys";

/// Creation properties of chunks; `filters`: 0 none, 1 deflate, 2 shuffle and deflate.
class Chunked {
 public:
  Chunked(std::vector<hsize_t> chunk, int filters) {
    H5Pset_chunk(id_, static_cast<int>(chunk.size()), chunk.data());
    if (filters > 1) H5Pset_shuffle(id_);
    if (filters > 0) H5Pset_deflate(id_, 4);
  }
  ~Chunked() { H5Pclose(id_); }
  hid_t id() const { return id_; }

 private:
  hid_t id_ = H5Pcreate(H5P_DATASET_CREATE);
};

void write_with_keys(const std::string& path, const std::vector<float>& values, std::vector<hsize_t> chunk,
                     int filters) {
  write_sample(path);
  RawFile(path).replace(keys, H5T_IEEE_F32LE, {2, 7, 4}, values.data(), Chunked(std::move(chunk), filters).id());
}

std::vector<float> keys_of(const Reader& reader, std::int64_t head) {
  const PromptInfo& prompt = reader.info().prompts[0];
  return reader.read_head(prompt, prompt.layers[0], Array::keys, head);
}

/// The stored bytes of a chunk of `bytes` zeros.
std::vector<unsigned char> deflated_zeros(RawFile& file, std::size_t bytes) {
  const std::vector<char> zeros(bytes);
  file.replace("/zeros", H5T_NATIVE_CHAR, {bytes}, zeros.data(), Chunked({bytes}, 1).id());
  const hid_t dataset = H5Dopen2(file.id(), "/zeros", H5P_DEFAULT);
  const hsize_t first = 0;
  hsize_t stored = 0;
  std::uint32_t mask = 0;
  H5Dget_chunk_storage_size(dataset, &first, &stored);
  std::vector<unsigned char> out(stored);
  H5Dread_chunk(dataset, H5P_DEFAULT, &first, &mask, out.data());
  H5Dclose(dataset);
  file.remove("/zeros");
  return out;
}

TEST_CASE("chunks of any shape are read, with and without filters") {
  std::vector<float> values(56);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 5);
  for (const std::vector<hsize_t>& chunk :
       std::vector<std::vector<hsize_t>>{{1, 7, 4}, {2, 3, 3}, {2, 7, 4}, {1, 1, 1}}) {
    for (const int filters : {0, 1, 2}) {
      CAPTURE(chunk[1]);
      CAPTURE(filters);
      const TempFolder folder;
      write_with_keys(folder / "t.h5", values, chunk, filters);
      const Reader reader(folder / "t.h5");
      CHECK(reader.info().largest_chunk == 4 * chunk[0] * chunk[1] * chunk[2]);
      for (std::int64_t head = 0; head < 2; ++head) {
        CHECK(keys_of(reader, head) ==
              std::vector<float>(values.begin() + 28 * head, values.begin() + 28 * (head + 1)));
      }
    }
  }
  CHECK(complaint([](RawFile& f) {
          const std::vector<std::int64_t> tokens{1, 2, 3, 4, 5, 6, 1 << 20};
          f.replace("/prompts/0/tokens", H5T_STD_I64LE, {7}, tokens.data(), Chunked({3}, 2).id());
          f.replace("/prompts/0/layers/0/query_positions", H5T_STD_U8LE, {3}, "\1\3\6", Chunked({2}, 1).id());
        }) == "");
}

TEST_CASE("a chunk that inflates to more or less than its size is refused") {
  for (const std::size_t bytes : {std::size_t{16} << 20, std::size_t{16}}) {
    const TempFolder folder;
    write_with_keys(folder / "t.h5", std::vector<float>(56), {1, 7, 4}, 1);
    {
      RawFile file(folder / "t.h5");
      const std::vector<unsigned char> bomb = deflated_zeros(file, bytes);
      const hsize_t second[] = {1, 0, 0};
      const hid_t dataset = H5Dopen2(file.id(), keys, H5P_DEFAULT);
      REQUIRE(H5Dwrite_chunk(dataset, H5P_DEFAULT, 0, second, bomb.size(), bomb.data()) >= 0);
      H5Dclose(dataset);
    }
    const Reader reader(folder / "t.h5");
    CHECK(keys_of(reader, 0) == std::vector<float>(28));
    CHECK(contains(message_of<IoError>([&] { keys_of(reader, 1); }), "keys: the chunk at [1, 0, 0] is damaged"));
  }
}

TEST_CASE("chunks larger than a head and 32 MiB, and large compressed descriptions, are refused before they are read") {
  CHECK(contains(complaint([](RawFile& f) {
                   f.remove(keys);
                   const hsize_t dims[] = {2, 7, 4}, most[] = {H5S_UNLIMITED, H5S_UNLIMITED, H5S_UNLIMITED};
                   const hid_t space = H5Screate_simple(3, dims, most);
                   const Chunked chunks({2, 1 << 20, 5}, 1);
                   H5Dclose(H5Dcreate2(f.id(), keys, H5T_IEEE_F32LE, space, H5P_DEFAULT, chunks.id(), H5P_DEFAULT));
                   H5Sclose(space);
                 }),
                 "keys: its chunks hold 41943040 bytes, and kvbench reads chunks of up to 33554432"));
  CHECK(contains(complaint([](RawFile& f) {
                   const std::vector<std::int64_t> tokens(9 << 20);
                   f.replace("/prompts/0/tokens", H5T_STD_I64LE, {tokens.size()}, tokens.data(),
                             Chunked({1 << 20}, 1).id());
                 }),
                 "/prompts/0/tokens: is compressed, and takes 75497472 bytes"));
}

TEST_CASE("one wrong bit in a string attribute of a new trace is noticed") {
  const TempFolder folder;
  write_sample(folder / "t.h5");
  std::ifstream in(folder / "t.h5", std::ios::binary);
  const std::string good{std::istreambuf_iterator<char>(in), {}};
  for (const std::string text : {"default", "interleaved", "sample", "Q4_1", "second"}) {
    const std::size_t at = good.find(text);
    REQUIRE(at != good.npos);
    for (std::size_t bit = 0; bit < 8 * text.size(); bit += 3) {
      CAPTURE(text);
      CAPTURE(bit);
      std::string bad = good;
      bad[at + bit / 8] = static_cast<char>(bad[at + bit / 8] ^ (1 << bit % 8));
      CHECK(complaint_about_bytes(bad) != "");
    }
  }
}

TEST_CASE("the type of the rotary embedding is one of the known ones") {
  const auto with = [](const std::string& type) {
    return complaint([&](RawFile& f) { f.set("/", "rope_type", type); });
  };
  CHECK(contains(with("defaulu"), "attribute 'rope_type' is 'defaulu'; it must be one of default, none, "));
  CHECK(with("yarn") == "");
  CHECK(with("other") == "");
}

TEST_CASE("names are UTF-8 text without control characters, for reader and writer") {
  const auto read = [](const std::string& model) { return complaint([&](RawFile& f) { f.set("/", "model", model); }); };
  const auto write = [](const std::string& id, const std::string& name) {
    const TempFolder folder;
    TraceInfo info = sample_info();
    info.prompts[1].id = id, info.prompts[1].name = name;
    return message_of<Error>([&] { write_sample(folder / "t.h5", info); });
  };
  for (const char* good : {"a\xC3\xBC\xE2\x82\xAC\xF0\x9F\x99\x82 =1,\"", "\xED\x9F\xBF\xEE\x80\x80\xF4\x8F\xBF\xBF"}) {
    CHECK(read(good) == "");
    CHECK(write(good, good) == "");
  }
  for (const char* bad : {"\xC3", "\xC0\xAF", "\xE2\x82", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\x80", "\xFF"}) {
    CHECK(contains(read(bad), "/: attribute 'model' is not UTF-8 text (byte 0)"));
    CHECK(contains(write("x", bad), "/prompts/x: attribute 'name' is not UTF-8 text"));
  }
  CHECK(contains(read("a\nb"), "attribute 'model' has a control character (byte 1 is 0x0a)"));
  CHECK(contains(read("a\x7F"), "byte 1 is 0x7f"));
  CHECK(contains(read("a\xC2\x9B"), "byte 2 is 0x9b"));  // U+009B begins a command to a terminal
  CHECK(read("a\xC2\xA0") == "");
  CHECK(contains(write("a\tb", "x"), "the name of a group of /prompts has a control character"));
  CHECK(contains(write("all", "x"), "a prompt cannot be named 'all'"));
  CHECK(contains(
      complaint([](RawFile& f) { H5Lmove(f.id(), "/prompts/10", f.id(), "/prompts/all", H5P_DEFAULT, H5P_DEFAULT); }),
      "a prompt cannot be named 'all'"));
  const TempFolder folder;
  write_sample(folder / "a\nb.h5");
  CHECK(contains(message_of<Error>([&] { const Reader reader(folder / "a\nb.h5"); }), "has a control character"));
}

TEST_CASE("a trace that another program writes is not called damaged") {
  const TempFolder folder;
  write_sample(folder / "t.h5");
  const int other = ::open((folder / "t.h5").c_str(), O_RDONLY);
  REQUIRE(::flock(other, LOCK_EX) == 0);
  const std::string message = message_of<Error>([&] { const Reader reader(folder / "t.h5"); });
  CHECK(contains(message, "another program holds the file open for writing"));
  CHECK_FALSE(contains(message, "damaged"));
  ::flock(other, LOCK_SH);
  CHECK(message_of<Error>([&] { const Reader reader(folder / "t.h5"); }) == "");
  ::close(other);
}

TEST_CASE("a trace that changes while it is open is refused") {
  const TempFolder folder;
  const std::string path = folder / "t.h5";
  const auto complaint_after = [&](const std::function<void()>& change) {
    write_sample(path);
    const Reader reader(path);
    keys_of(reader, 0);
    change();
    const std::string message = message_of<IoError>([&] { keys_of(reader, 0); });
    CHECK(message_of<IoError>([&] { reader.sha256(); }) == message);
    return message;
  };
  const std::string changed = "t.h5: the file was changed or replaced while it was read";
  CHECK(complaint_after([] {}) == "");
  CHECK(
      contains(complaint_after([&] { std::fstream(path, std::ios::in | std::ios::out).seekp(4096) << 'x'; }), changed));
  CHECK(contains(complaint_after([&] { write_sample(path); }), changed));
  CHECK(contains(complaint_after([&] { std::ofstream(path, std::ios::app) << "more"; }), changed));
  CHECK(contains(complaint_after([&] { std::filesystem::remove(path); }), changed));
}

}  // namespace
}  // namespace kvbench::trace::test
