// SPDX-License-Identifier: Apache-2.0
#include <kvbench/core/input_file.hpp>

#include <filesystem>
#include <fstream>

#include <sys/stat.h>

#include <doctest/doctest.h>
#include <support/messages.hpp>
#include <support/temp_folder.hpp>

#include <kvbench/core/error.hpp>

using namespace kvbench;
using namespace kvbench::testing;

namespace {

std::string refusal(const std::string& path) {
  return message_of<Error>([&] { read_input_file(path, 100, "a list"); });
}

}  // namespace

TEST_CASE("a regular file is read as a whole, directly or through a link") {
  const TempFolder folder;
  folder.file("some\ntext", "f");
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
  const TempFolder folder;
  REQUIRE(::mkfifo((folder / "pipe").c_str(), 0600) == 0);  // without a writer: opening it the usual way would block
  const std::string special =
      ": is a pipe, a socket or a device, not a list; write its content to a file and name that.";
  CHECK(refusal(folder / "pipe") == folder / "pipe" + special);
  CHECK(refusal("/dev/zero") == "/dev/zero" + special);
  CHECK(refusal(folder.path()) == folder.path() + ": is a folder; name a list.");
  CHECK(refusal(folder / "none") == folder / "none" + ": there is no such file; check the name.");
  for (const std::string& path : {folder / "pipe", std::string("/dev/zero"), folder.path(), folder / "none"}) {
    CHECK(!file_begins_with(path, std::string_view("\0", 1)));
  }
}

TEST_CASE("a file that is too large is refused before memory is allocated") {
  const TempFolder folder;
  std::ofstream(folder / "f").put('x');
  std::filesystem::resize_file(folder / "f", std::uintmax_t{1} << 40);  // sparse
  CHECK(refusal(folder / "f") == folder / "f" + ": has 1099511627776 bytes, more than the 100 that a list may have.");
}
