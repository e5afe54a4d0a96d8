// SPDX-License-Identifier: Apache-2.0
#include <kvbench/core/input_file.hpp>

#include <filesystem>
#include <fstream>

#include <sys/stat.h>
#include <unistd.h>

#include <doctest/doctest.h>

#include <kvbench/core/error.hpp>

using namespace kvbench;

namespace {

struct Folder {
  std::filesystem::path path = std::filesystem::temp_directory_path() / fmt::format("kvbench-input-{}", ::getpid());
  Folder() { std::filesystem::create_directories(path); }
  ~Folder() { std::filesystem::remove_all(path); }
  std::string operator/(const char* name) const { return path / name; }
};

std::string refusal(const std::string& path, std::uint64_t most = 100) {
  try {
    read_input_file(path, most, "a list");
  } catch (const Error& error) {
    return error.what();
  }
  return "none";
}

}  // namespace

TEST_CASE("a regular file is read as a whole, directly or through a link") {
  const Folder folder;
  std::ofstream(folder / "f") << "some\ntext";
  std::filesystem::create_symlink(folder / "f", folder / "link");
  CHECK(read_input_file(folder / "f", 9, "a list") == "some\ntext");
  CHECK(read_input_file(folder / "link", 9, "a list") == "some\ntext");
  CHECK(begin_of_file(folder / "link", 4) == "some");
  CHECK(begin_of_file(folder / "f", 100) == "some\ntext");
  CHECK(file_begins_with(folder / "link", "some"));
  CHECK(!file_begins_with(folder / "f", "text"));
  CHECK(!file_begins_with(folder / "f", "some\ntext and more"));
}

TEST_CASE("other files are refused before a byte is read") {
  const Folder folder;
  REQUIRE(::mkfifo((folder / "pipe").c_str(), 0600) == 0);  // without a writer: opening it the usual way would block
  const std::string special =
      ": is a pipe, a socket or a device, not a list; write its content to a file and name that.";
  CHECK(refusal(folder / "pipe") == folder / "pipe" + special);
  CHECK(refusal("/dev/zero") == "/dev/zero" + special);
  CHECK(refusal(folder.path) == folder.path.string() + ": is a folder; name a list.");
  CHECK(refusal(folder / "none") == folder / "none" + ": there is no such file; check the name.");
  for (const std::string& path : {folder / "pipe", std::string("/dev/zero"), folder.path.string(), folder / "none"}) {
    CHECK(!file_begins_with(path, std::string_view("\0", 1)));
  }
}

TEST_CASE("a file that is too large is refused before memory is allocated") {
  const Folder folder;
  std::ofstream(folder / "f").put('x');
  std::filesystem::resize_file(folder / "f", std::uintmax_t{1} << 40);  // sparse
  CHECK(refusal(folder / "f") == folder / "f" + ": has 1099511627776 bytes, more than the 100 that a list may have.");
}
