// SPDX-License-Identifier: Apache-2.0
// Traces are written atomically, whatever happens to the writer.
#include <csignal>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <doctest/doctest.h>
#include <kvbench/core/error.hpp>
#include <kvbench/trace/coverage.hpp>

#include <unit/trace/sample.hpp>

namespace kvbench::trace::test {
namespace {

std::size_t files_in(const TempFolder& folder) {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder.path())) ++count;
  return count;
}

/// Limits the size of files to `bytes` in this scope, like a full disk.
class SizeLimit {
 public:
  explicit SizeLimit(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &old_);
    const rlimit now{bytes, old_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &now);
  }
  ~SizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &old_);
    std::signal(SIGXFSZ, handler_);
  }
  SizeLimit(const SizeLimit&) = delete;
  SizeLimit& operator=(const SizeLimit&) = delete;

 private:
  void (*handler_)(int);
  rlimit old_{};
};

TraceInfo large_info() {
  TraceInfo info = sample_info();
  info.prompts.resize(1);
  PromptInfo& prompt = info.prompts[0];
  prompt.num_tokens = 20000;
  prompt.tokens.assign(20000, 1);
  return info;
}

TEST_CASE("without commit() no file is left") {
  const TempFolder folder;
  for (const bool compress : {false, true}) {
    Writer writer(folder / "t.h5", sample_info(), {.compress = compress});
    fill(writer, sample_info());
    CHECK(files_in(folder) == 1);
    CHECK_FALSE(std::filesystem::exists(folder / "t.h5"));
  }
  CHECK(files_in(folder) == 0);
}

TEST_CASE("the old file is kept until the new one is complete") {
  const TempFolder folder;
  write_sample(folder / "t.h5");
  const std::string before = Reader(folder / "t.h5").sha256();
  {
    Writer writer(folder / "t.h5", sample_info(Dtype::f16));
    fill(writer, sample_info(Dtype::f16));
    CHECK(Reader(folder / "t.h5").sha256() == before);
  }
  CHECK(Reader(folder / "t.h5").sha256() == before);
  write_sample(folder / "t.h5", sample_info(Dtype::f16), true);
  CHECK(Reader(folder / "t.h5").info().dtype == Dtype::f16);
  CHECK(files_in(folder) == 1);
}

TEST_CASE("a killed writer leaves nothing under the final name") {
  const TempFolder folder;
  const pid_t child = ::fork();
  if (child == 0) {
    Writer writer(folder / "t.h5", sample_info());
    fill(writer, sample_info());
    ::kill(::getpid(), SIGKILL);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  REQUIRE(WIFSIGNALED(status));
  CHECK_FALSE(std::filesystem::exists(folder / "t.h5"));
  REQUIRE(files_in(folder) == 1);
  const std::string left = std::filesystem::directory_iterator(folder.path())->path().string();
  CHECK(left.starts_with(folder / "t.h5.tmp."));
  CHECK(left.ends_with("." + std::to_string(child)));
  CHECK(message_of<Error>([&] { const Reader reader(left); }) != "");
}

TEST_CASE("commit() refuses a trace with a missing row") {
  const TempFolder folder;
  const TraceInfo info = sample_info();
  Writer writer(folder / "t.h5", info);
  for_each_head(info, [&](std::size_t p, std::size_t l, Array array, std::int64_t head, const Shape& shape) {
    std::vector<float> slab = sample_slab(shape, p, l, array, head);
    if (p == 1 && l == 1 && array == Array::attention_output && head == 2) slab.resize(slab.size() - 3);
    writer.write_rows(p, l, array, head, 0, slab);
  });
  CHECK(contains(message_of<Error>([&] { writer.commit(); }),
                 "/prompts/10/layers/3/attention_output: row 2 of head 2 was never written"));
  CHECK_FALSE(std::filesystem::exists(folder / "t.h5"));
  writer.write_rows(1, 1, Array::attention_output, 2, 2, std::vector<float>{1, 2, 3});
  writer.commit();
  CHECK(Reader(folder / "t.h5").info().prompts.size() == 2);
  CHECK(contains(message_of<Error>([&] { writer.commit(); }), "already called"));
}

TEST_CASE("a description that violates the schema is refused before a file is created") {
  const TempFolder folder;
  TraceInfo info = sample_info();
  info.prompts[0].layers[1].query_positions = {3, 3};
  CHECK(contains(message_of<Error>([&] { const Writer writer(folder / "t.h5", info); }), "positions must increase"));
  CHECK(files_in(folder) == 0);
}

TEST_CASE("rows that do not fit the shape are refused") {
  const TempFolder folder;
  Writer writer(folder / "t.h5", sample_info());
  const auto write = [&](Array array, std::int64_t head, std::int64_t row, std::size_t values) {
    return message_of<Error>([&] { writer.write_rows(0, 0, array, head, row, std::vector<float>(values)); });
  };
  CHECK(contains(write(Array::keys, 2, 0, 4), "do not fit the shape [2, 7, 4]"));
  CHECK(contains(write(Array::keys, 0, 7, 4), "do not fit"));
  CHECK(contains(write(Array::keys, 0, -1, 4), "do not fit"));
  CHECK(contains(write(Array::keys, 0, 0, 5), "do not fit"));
  CHECK(contains(write(Array::keys_pre_rope, 0, 0, 4), "was not declared"));
}

TEST_CASE("folders that cannot be written to are refused") {
  const TempFolder folder;
  const auto open = [&](const std::string& path) {
    return message_of<IoError>([&] { const Writer writer(path, sample_info()); });
  };
  CHECK(contains(open(folder / "none/t.h5"), "create the folder first"));
  CHECK(contains(open(folder.path()), "name a regular file"));
  std::filesystem::permissions(folder.path(), std::filesystem::perms::owner_read | std::filesystem::perms::owner_exec |
                                                  std::filesystem::perms::others_read |
                                                  std::filesystem::perms::others_exec);
  const bool root = ::geteuid() == 0;  // root may write anywhere: become another user
  if (root) REQUIRE(::seteuid(65534) == 0);
  const std::string message = open(folder / "t.h5");
  if (root) REQUIRE(::seteuid(0) == 0);
  std::filesystem::permissions(folder.path(), std::filesystem::perms::owner_all);
  CHECK(contains(message, "choose a folder that you may write to"));
}

TEST_CASE("a disk that is full at the start") {
  const TempFolder folder;
  const SizeLimit limit(65536);
  const std::string message = message_of<IoError>([&] { const Writer writer(folder / "t.h5", large_info()); });
  CHECK(contains(message, "t.h5"));
  CHECK(contains(message, "File too large"));
  CHECK(files_in(folder) == 0);
}

TEST_CASE("a disk that fills up while rows are written") {
  const TempFolder folder;
  for (const bool compress : {false, true}) {
    CAPTURE(compress);
    const TraceInfo info = large_info();
    std::string message;
    {
      Writer writer(folder / "t.h5", info, {.compress = compress});
      const SizeLimit limit(compress ? 65536 : 300000);
      message = message_of<IoError>([&] {
        if (compress) {
          const SizeLimit none(RLIM_INFINITY);
          fill(writer, info);
        } else {
          fill(writer, info);
        }
        writer.commit();
      });
      CHECK(contains(message, "t.h5"));
      CHECK(contains(message, "File too large"));
    }
    CHECK(files_in(folder) == 0);
  }
  write_sample(folder / "t.h5");  // HDF5 still works
  CHECK(Reader(folder / "t.h5").info().prompts.size() == 2);
}

TEST_CASE("coverage merges intervals and finds the first gap") {
  Coverage rows;
  CHECK(rows.first_gap(5) == 0);
  rows.add(2, 4);
  CHECK(rows.first_gap(5) == 0);
  rows.add(0, 1);
  CHECK(rows.first_gap(5) == 1);
  rows.add(1, 2);
  CHECK(rows.first_gap(5) == 4);
  rows.add(3, 5);
  CHECK(rows.first_gap(5) == 5);
  rows.add(1, 1);
  CHECK(rows.first_gap(6) == 5);
}

}  // namespace
}  // namespace kvbench::trace::test
