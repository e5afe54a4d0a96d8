// SPDX-License-Identifier: Apache-2.0
#include <apps/llama/texts.hpp>

#include <doctest/doctest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <support/temp_folder.hpp>

#include <kvbench/core/error.hpp>

using namespace kvbench;
using namespace kvbench::testing;
using llama::read_ids;
using llama::read_text;

namespace {

void make_socket(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  const int file = ::socket(AF_UNIX, SOCK_STREAM, 0);
  REQUIRE(::bind(file, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0);
  ::close(file);
}

}  // namespace

TEST_CASE("bytes that are not UTF-8 are named by line and byte") {
  const TempFolder folder;
  CHECK(read_text(folder.file("caf\xC3\xA9\n")) == "caf\xC3\xA9\n");
  const auto refused = [&](const std::string& text, const char* words) {
    CAPTURE(text);
    CHECK_THROWS_WITH_AS(read_text(folder.file(text)), doctest::Contains(words), Error);
  };
  refused("one\ntwo\ncaf\xE9 au lait\n", "text:3: byte 12 of the file (0xe9) is not UTF-8 text");
  refused("\xFF\xFEo\0n\0", "text:1: byte 1 of the file (0xff)");
  refused("end\n\xE2\x82", "text:2: byte 5 of the file (0xe2)");  // cut inside a character
  refused("\xC0\x80", "text:1: byte 1 of the file (0xc0)");       // not the shortest form
}

TEST_CASE("what is no regular file is refused at once") {
  const TempFolder folder;
  REQUIRE(::mkfifo((folder / "pipe").c_str(), 0600) == 0);
  make_socket(folder / "socket");
  for (const auto& [file, words] : {std::pair{folder / "pipe", "is a pipe"},
                                    {folder / "socket", "is a pipe, a socket"},
                                    {"/dev/zero", "or a device"},
                                    {folder / "", "is a folder"},
                                    {folder / "none", "there is no such file"}}) {
    const std::string path = file;
    CAPTURE(path);
    CHECK_THROWS_WITH_AS(read_text(path), doctest::Contains(words), Error);
    CHECK_THROWS_WITH_AS(read_ids(path, 100), doctest::Contains(words), Error);
  }
}
