// SPDX-License-Identifier: Apache-2.0
#include <kvbench/store/frame_file.hpp>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <sys/resource.h>
#include <sys/stat.h>

#include <doctest/doctest.h>

#include <kvbench/core/error.hpp>
#include <support/messages.hpp>
#include <support/temp_folder.hpp>

using namespace kvbench;
using namespace kvbench::store;
using namespace kvbench::testing;
using Mode = FrameFile::Mode;

namespace {

std::string bytes_of(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

void write(const std::string& path, const std::string& bytes) { std::ofstream(path, std::ios::binary) << bytes; }

std::string key(char c) { return std::string(64, c); }

/// Three frames: "one", "" and "three".
std::string three_frames(const std::string& path) {
  FrameFile file(path, Mode::overwrite);
  file.append(1, key('a'), "one");
  file.append(2, key('b'), "");
  file.append(3, key('c'), "three");
  return bytes_of(path);
}

}  // namespace

TEST_CASE("frames come back in order with kind, key and bytes") {
  const TempFolder folder;
  three_frames(folder / "f");
  const FrameFile file(folder / "f", Mode::read);
  REQUIRE(file.frames().size() == 3);
  CHECK(file.frames()[0].kind == 1);
  CHECK(file.frames()[1].key == key('b'));
  CHECK(file.read(file.frames()[0]) == "one");
  CHECK(file.read(file.frames()[1]).empty());
  CHECK(file.read(file.frames()[2]) == "three");
  CHECK(file.torn_bytes() == 0);
}

TEST_CASE("a file that is cut anywhere keeps its complete frames, and frames are appended after them") {
  const TempFolder folder;
  const std::string whole = three_frames(folder / "f");
  const std::size_t header = 16 + 128;  // before each payload; the file begins with 8 bytes
  const std::size_t ends[] = {8 + header + 3, 8 + 2 * header + 3, 8 + 3 * header + 8};
  REQUIRE(whole.size() == ends[2]);
  for (std::size_t size = 0; size <= whole.size(); ++size) {
    CAPTURE(size);
    write(folder / "cut", whole.substr(0, size));
    const auto kept =
        static_cast<std::size_t>(std::ranges::count_if(ends, [&](std::size_t end) { return end <= size; }));
    {
      FrameFile file(folder / "cut", Mode::append);
      CHECK(file.frames().size() == kept);
      file.append(9, key('z'), "after");
    }
    const FrameFile file(folder / "cut", Mode::read);
    REQUIRE(file.frames().size() == kept + 1);
    CHECK(file.torn_bytes() == 0);
    CHECK(file.read(file.frames().back()) == "after");
  }
}

TEST_CASE("any single damaged byte costs at most its own frame") {
  const TempFolder folder;
  const std::string whole = three_frames(folder / "f");
  const std::size_t first_payload = 8 + 16 + 128;
  for (std::size_t at = first_payload; at < first_payload + 3; ++at) {
    std::string damaged = whole;
    damaged[at] ^= 1;
    write(folder / "d", damaged);
    const FrameFile file(folder / "d", Mode::read);
    REQUIRE(file.frames().size() == 2);
    CHECK(file.frames()[0].kind == 2);
    CHECK(file.read(file.frames()[1]) == "three");
    CHECK(file.torn_bytes() == 16 + 128 + 3);
  }
  for (std::size_t at = 8; at < whole.size(); ++at) {  // including headers: never a frame with other bytes
    std::string damaged = whole;
    damaged[at] ^= 1;
    write(folder / "d", damaged);
    const FrameFile file(folder / "d", Mode::read);
    CHECK(file.frames().size() <= 2);
    for (const Frame& frame : file.frames()) {
      const std::string text = file.read(frame);
      CHECK((text == "one" || text.empty() || text == "three"));
    }
  }
}

TEST_CASE("a frame whose length is not that of its payload ends the file") {
  const TempFolder folder;
  std::string bytes = three_frames(folder / "f");
  for (const std::uint64_t length :
       {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{1} << 31, std::uint64_t{1} << 63, ~std::uint64_t{0}}) {
    std::memcpy(bytes.data() + 8, &length, sizeof length);
    write(folder / "d", bytes);
    const FrameFile file(folder / "d", Mode::read);
    CHECK(std::ranges::none_of(file.frames(), [](const Frame& frame) { return frame.kind == 1; }));
  }
}

TEST_CASE("a file without frames is refused") {
  const TempFolder folder;
  write(folder / "csv", "run,trace\n");
  CHECK(contains(message_of<Error>([&] { FrameFile(folder / "csv", Mode::append); }), "is not a file of cells"));
  CHECK(bytes_of(folder / "csv") == "run,trace\n");
  CHECK(contains(message_of<Error>([&] { FrameFile(folder / "none", Mode::read); }), "there is no such file"));
  CHECK(contains(message_of<IoError>([&] { FrameFile(folder / "no/where", Mode::append); }), "cannot be written"));
  CHECK(contains(message_of<Error>([&] { FrameFile(folder / "csv", Mode::overwrite); }), "is not a file of cells"));
  CHECK(bytes_of(folder / "csv") == "run,trace\n");
}

TEST_CASE("a second writer is refused") {
  const TempFolder folder;
  const FrameFile first(folder / "f", Mode::append);
  CHECK(
      contains(message_of<Error>([&] { FrameFile(folder / "f", Mode::append); }), "another run is writing this file"));
  CHECK(contains(message_of<Error>([&] { FrameFile(folder / "f", Mode::overwrite); }),
                 "another run is writing this file"));
  CHECK_NOTHROW(FrameFile(folder / "f", Mode::read));
}

TEST_CASE("overwriting discards the frames, and a file that holds nothing is not left behind") {
  const TempFolder folder;
  three_frames(folder / "f");
  {
    FrameFile file(folder / "f", Mode::overwrite);
    CHECK(file.frames().empty());
    file.append(1, key('d'), "new");
  }
  CHECK(FrameFile(folder / "f", Mode::read).frames().size() == 1);
  { const FrameFile file(folder / "f", Mode::overwrite); }
  CHECK_FALSE(std::filesystem::exists(folder / "f"));
}

TEST_CASE("a file is removed under its lock, and a link to it stays") {
  const TempFolder folder;
  three_frames(folder / "f");
  std::filesystem::create_symlink(folder / "f", folder / "link");
  const FrameFile file(folder / "link", Mode::append);
  file.remove();
  CHECK_FALSE(std::filesystem::exists(folder / "f"));
  CHECK(std::filesystem::is_symlink(folder / "link"));
  const FrameFile next(folder / "f", Mode::append);  // another file, which is not locked
  CHECK(next.frames().empty());
}

TEST_CASE("a scratch file has no name") {
  FrameFile file("", Mode::scratch);
  CHECK(!std::filesystem::exists(file.path()));
  file.append(1, key('a'), "text");
  CHECK(file.read(file.frames()[0]) == "text");
}

TEST_CASE("pipes, devices and folders are refused at once") {
  const TempFolder folder;
  REQUIRE(::mkfifo((folder / "pipe").c_str(), 0600) == 0);
  for (const Mode mode : {Mode::read, Mode::append}) {
    CHECK(contains(message_of<Error>([&] { FrameFile(folder / "pipe", mode); }),
                   "pipe: is a pipe, a socket or a device"));
    CHECK(contains(message_of<Error>([&] { FrameFile("/dev/zero", mode); }),
                   "/dev/zero: is a pipe, a socket or a device"));
  }
  CHECK(
      contains(message_of<Error>([&] { FrameFile(folder.path(), Mode::read); }), "is a folder; name a file of cells"));
  CHECK(contains(message_of<IoError>([&] { FrameFile(folder.path(), Mode::append); }), "Is a directory"));
}

TEST_CASE("a frame that claims a sparse file costs no memory") {
  const TempFolder folder;
  three_frames(folder / "f");
  std::filesystem::resize_file(folder / "f", std::uintmax_t{1} << 28);
  {
    std::fstream file(folder / "f", std::ios::in | std::ios::out | std::ios::binary);
    const std::uint64_t length = (std::uint64_t{1} << 28) - 8 - 16 - 128;
    file.seekp(8).write(reinterpret_cast<const char*>(&length), sizeof length);
  }
  struct rusage before {
  }, after{};
  ::getrusage(RUSAGE_SELF, &before);
  CHECK(FrameFile(folder / "f", Mode::read).frames().empty());
  ::getrusage(RUSAGE_SELF, &after);
  CHECK(after.ru_maxrss - before.ru_maxrss < 100'000);  // KiB
}

TEST_CASE("a folder for temporary files that does not exist is named with the variable that sets it") {
  const char* before = std::getenv("TMPDIR");
  const std::string folder = before == nullptr ? "" : before;
  ::setenv("TMPDIR", "/nowhere/at/all", 1);
  const std::string message = message_of<Error>([] { FrameFile file("", Mode::scratch); });
  if (before == nullptr)
    ::unsetenv("TMPDIR");
  else
    ::setenv("TMPDIR", folder.c_str(), 1);
  CHECK(contains(message, "set TMPDIR to an existing folder"));
}
