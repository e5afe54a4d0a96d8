// SPDX-License-Identifier: Apache-2.0
// What an output path may name, and what becomes of the file that is replaced.
#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <doctest/doctest.h>
#include <support/temp_folder.hpp>

#include <kvbench/core/atomic_file.hpp>
#include <kvbench/core/error.hpp>
#include <kvbench/core/output_path.hpp>

using namespace kvbench;
using namespace kvbench::testing;
namespace fs = std::filesystem;

namespace {

void write(const std::string& path, const std::string& text) { std::ofstream(path) << text; }

std::string text_of(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

void publish(const std::string& path, const std::string& text) {
  AtomicFile file(path);
  write(file.temporary(), text);
  file.publish();
}

/// The id of a process that has ended.
pid_t ended_process() {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  ::waitpid(child, nullptr, 0);
  return child;
}

}  // namespace

TEST_CASE("a file is replaced through symbolic links, which stay") {
  const TempFolder folder;
  write(folder / "real", "old");
  fs::create_symlink("real", folder / "link");
  fs::create_symlink("link", folder / "chain");
  publish(folder / "chain", "new");
  CHECK(text_of(folder / "real") == "new");
  CHECK(fs::is_symlink(folder / "link"));
  CHECK(fs::is_symlink(folder / "chain"));
  fs::create_symlink("later", folder / "dangling");
  publish(folder / "dangling", "new");
  CHECK(text_of(folder / "later") == "new");
  fs::create_symlink("b", folder / "a");
  fs::create_symlink("a", folder / "b");
  CHECK_THROWS_WITH_AS(AtomicFile(folder / "a"), doctest::Contains("circle"), IoError);
}

TEST_CASE("a replaced file keeps its mode, and a new one has the usual one") {
  const TempFolder folder;
  write(folder / "f", "old");
  fs::permissions(folder / "f", fs::perms(0640));
  publish(folder / "f", "new");
  CHECK(fs::status(folder / "f").permissions() == fs::perms(0640));
  write(folder / "usual", "");
  publish(folder / "new", "new");
  CHECK(fs::status(folder / "new").permissions() == fs::status(folder / "usual").permissions());
}

TEST_CASE("devices, pipes and folders are never replaced") {
  const TempFolder folder;
  REQUIRE(::mkfifo((folder / "pipe").c_str(), 0600) == 0);
  fs::create_symlink("/dev/null", folder / "null");
  for (const std::string& path :
       {std::string("/dev/null"), folder / "null", folder / "pipe", std::string("/dev/stdout")}) {
    CAPTURE(path);
    CHECK(is_stream(path));
    CHECK_THROWS_AS(AtomicFile{path}, IoError);
  }
  CHECK_FALSE(is_stream(folder / "new"));
  CHECK_FALSE(is_stream(folder.path()));
  CHECK_THROWS_WITH_AS(AtomicFile(folder.path()), doctest::Contains("a folder"), IoError);
  CHECK(folder.files() == 2);
}

TEST_CASE("temporary files of processes that have ended are removed, those of others are not") {
  const TempFolder folder;
  std::string mine;
  {
    const AtomicFile file(folder / "f");
    mine = file.temporary();
    CHECK(fs::exists(mine));
  }
  CHECK(folder.files() == 0);
  const std::string prefix = mine.substr(0, mine.rfind('.') + 1);
  const std::string ended = std::to_string(ended_process());
  write(prefix + ended, "dead");
  write(prefix + ended + ".z", "dead");
  write(prefix + std::to_string(::getppid()), "alive");
  write(folder / "f.tmp.elsewhere." + ended, "of another host");
  write(folder / "g.tmp." + ended, "of another file");
  publish(folder / "f", "new");
  CHECK(folder.files() == 4);
  CHECK(fs::exists(prefix + std::to_string(::getppid())));
  CHECK(fs::exists(folder / "f.tmp.elsewhere." + ended));
}

TEST_CASE("an output must not be an input or another output, under whatever name") {
  const TempFolder folder;
  write(folder / "in", "data");
  fs::create_hard_link(folder / "in", folder / "hard");
  fs::create_symlink("in", folder / "soft");
  const std::vector<NamedFile> inputs{{"the trace", folder / "in"}};
  for (const std::string& path : {folder / "in", folder / "hard", folder / "soft", folder / "./in"}) {
    CAPTURE(path);
    CHECK_THROWS_WITH_AS(check_distinct(std::vector<NamedFile>{{"-o", path}}, inputs),
                         doctest::Contains("is the same file as the trace"), Error);
  }
  const std::vector<NamedFile> twice{{"-o", folder / "new"},
                                     {"--raw", folder / "../" + fs::path(folder.path()).filename().string() + "/new"}};
  CHECK_THROWS_WITH_AS(check_distinct(twice, {}), doctest::Contains("--raw"), Error);
  CHECK_NOTHROW(check_distinct(std::vector<NamedFile>{{"-o", folder / "new"}, {"--raw", folder / "other"}}, inputs));
  CHECK_NOTHROW(check_distinct(
      std::vector<NamedFile>{{"-o", "-"}, {"--raw", ""}, {"x", "/dev/null"}, {"y", "/dev/null"}}, inputs));
}
