// SPDX-License-Identifier: Apache-2.0
// The files of a split model, and that its digest is of all of them.
#include <apps/common/model_files.hpp>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <unistd.h>

#include <doctest/doctest.h>

namespace kvbench {
namespace {

namespace fs = std::filesystem;

struct Folder {
  fs::path path = fs::temp_directory_path() / ("kvbench-model-files-" + std::to_string(::getpid()));
  Folder() { fs::create_directories(path); }
  ~Folder() { fs::remove_all(path); }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(path / name) << text;
    return (path / name).string();
  }
};

TEST_CASE("a model is known by all its parts") {
  const Folder folder;
  const std::string whole = folder.write("m.gguf", "one");
  CHECK(app::model_files(whole) == std::vector{whole});
  // sha256sum of "one"
  CHECK(app::model_sha256(whole) == "7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed");

  const std::string first = folder.write("m-00001-of-00002.gguf", "one");
  CHECK(app::model_files(first) == std::vector{first});  // the other part is missing
  const std::string second = folder.write("m-00002-of-00002.gguf", "two");
  CHECK(app::model_files(first) == std::vector{first, second});
  CHECK(app::model_files(second) == std::vector{first, second});
  // { printf one | sha256sum; printf two | sha256sum; } | cut -c 1-64 | sha256sum
  const std::string digest = app::model_sha256(first);
  CHECK(digest == "55630d5d5f11663af2f7090957091cd48279571549cc6fc72fe533cf20c1814b");

  folder.write("m-00002-of-00002.gguf", "tw0");  // replaced in place
  CHECK(app::model_sha256(first) != digest);
  fs::remove(second);
  fs::create_symlink(folder.write("elsewhere", "two"), second);
  CHECK(app::model_sha256(first) == digest);
  folder.write("elsewhere", "tw0");
  CHECK(app::model_sha256(first) != digest);

  for (const char* name : {"m-0001-of-0002.gguf", "m-00001-of-00002.bin", "m-00001-of-00002.gguf.part"}) {
    const std::string path = folder.write(name, "x");
    CHECK(app::model_files(path) == std::vector{path});
  }
}

}  // namespace
}  // namespace kvbench
