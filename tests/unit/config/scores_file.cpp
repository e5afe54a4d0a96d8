// SPDX-License-Identifier: Apache-2.0
#include <functional>
#include <limits>

#include <doctest/doctest.h>

#include <kvbench/config/plan_file.hpp>
#include <kvbench/config/scores_file.hpp>
#include <kvbench/methods/registry.hpp>
#include <kvbench/trace/hdf5/output.hpp>
#include <unit/config/files.hpp>

using namespace kvbench;
using namespace kvbench::config;
using namespace kvbench::testing;
using kvbench::testing::SweepFiles;
using trace::h5::Object;

namespace {

using Fill = std::function<void(const Object& root)>;
const std::string digest(64, 'c');

std::string write(const SweepFiles& files, const Fill& fill, const std::string& name = "s.h5") {
  const std::string path = files.folder / name;
  AtomicFile file(path);
  trace::h5::write_file(file, fill);
  return path;
}

void head(const Object& root, const std::string& version = "1.0", const std::string& sha256 = digest) {
  root.set("kvbench_scores", version);
  root.set("trace_sha256", sha256);
}

void scores(const Object& root, const std::vector<std::pair<const char*, std::vector<Index>>>& layers,
            std::vector<float> values = {}) {
  const Object prompt = root.create_group("prompts").create_group("0");
  for (const auto& [name, dims] : layers) {
    Index size = 1;
    for (const Index dim : dims) size *= dim;
    std::vector<float> own = values;
    own.resize(static_cast<std::size_t>(size), 1);
    trace::h5::write(prompt, name, own, dims);
  }
}

}  // namespace

TEST_CASE("a file of scores is read, and defines a method with the digest of its content") {
  const SweepFiles files;
  const std::string path = write(files, [](const Object& root) {
    head(root);
    scores(root, {{"0", {2, 3}}, {"17", {2, 3}}}, {9, 8, 7, 6, 5, 4});
  });
  const methods::GivenScores read = read_scores(path);
  CHECK(read.trace_sha256 == digest);
  REQUIRE(read.prompts.at("0").size() == 2);
  const methods::LayerScores& layer = read.prompts.at("0").at(17);
  CHECK(layer.heads == 2);
  CHECK(layer.tokens == 3);
  CHECK(layer.values == std::vector<float>{9, 8, 7, 6, 5, 4});

  const methods::MethodInfo& info = methods::find_method("scores:" + path);
  CHECK(&info == &methods::find_method("scores:" + path));
  CHECK(info.trace_sha256 == digest);
  const std::string text = info.bind(std::vector<methods::Assignment>{{"scope", "model"}}).text();
  CHECK(text.starts_with("sha256="));
  CHECK(text.ends_with(";scope=model"));
  CHECK_THROWS_WITH_AS(info.bind(std::vector<methods::Assignment>{{"sha256", "0"}}),
                       doctest::Contains("the file has changed"), Error);
  const methods::MethodInfo& both = methods::find_method("adakv(scores:" + path + ")+int8");
  CHECK(both.name == "adakv(scores:" + path + ")+int8");
  CHECK(both.trace_sha256 == digest);
  CHECK(methods::parse_method_name(both.name).file == path);
  CHECK(methods::family_of("scores:" + path) == "own");
  write(files, [](const Object& root) {
    head(root);
    scores(root, {{"0", {2, 3}}});
  });
  CHECK(&methods::find_method("scores:" + path) != &info);
}

TEST_CASE("files that hold no scores are refused with the file, the place and the remedy") {
  const float nan = std::numeric_limits<float>::quiet_NaN(), infinity = std::numeric_limits<float>::infinity();
  const struct {
    Fill fill;
    const char* sentence;
  } cases[] = {{[](const Object&) {}, "has no attribute kvbench_scores, so it holds no scores; write them with"},
               {[](const Object& root) { root.set("kvbench_trace", std::string("1.0")); }, "it is a trace"},
               {[](const Object& root) { head(root, "2.0"); }, "use a newer kvbench"},
               {[](const Object& root) { head(root, "1.0", "abc"); }, "trace_sha256 is 'abc'"},
               {[](const Object& root) { head(root); }, "prompts"},
               {[](const Object& root) {
                  head(root);
                  root.create_group("prompts");
                },
                "/prompts: there are no prompts"},
               {[](const Object& root) {
                  head(root);
                  scores(root, {});
                },
                "/prompts/0: it has no scores of a layer"},
               {[](const Object& root) {
                  head(root);
                  scores(root, {{"first", {2, 3}}});
                },
                "'first' is not the number of a layer"},
               {[](const Object& root) {
                  head(root);
                  scores(root, {{"01", {2, 3}}});
                },
                "'01' is not the number of a layer"},
               {[](const Object& root) {
                  head(root);
                  scores(root, {{"3", {6}}});
                },
                "/prompts/0/3: scores have the shape [kv heads, tokens]"},
               {[](const Object& root) {
                  head(root);
                  scores(root, {{"3", {2, 3}}, {"4", {2, 4}}});
                },
                "it has the shape [2, 4], and another layer of the prompt has [2, 3]"},
               {[&](const Object& root) {
                  head(root);
                  scores(root, {{"3", {2, 3}}}, {1, 1, 1, 1, nan});
                },
                "/prompts/0/3: kv head 1, token 1 is nan"},
               {[&](const Object& root) {
                  head(root);
                  scores(root, {{"3", {2, 3}}}, {1, 1, infinity});
                },
                "/prompts/0/3: kv head 0, token 2 is inf"},
               {[](const Object& root) {
                  head(root);
                  const std::vector<std::int32_t> whole(6, 1);
                  trace::h5::write(root.create_group("prompts").create_group("0"), "3", whole, {2, 3});
                },
                "scores are floating-point numbers"}};
  for (const auto& [fill, sentence] : cases) {
    const SweepFiles files;
    const std::string path = write(files, fill);
    CAPTURE(sentence);
    const std::string message = message_of<Error>([&] { methods::find_method("scores:" + path); });
    CAPTURE(message);
    CHECK(message.starts_with(path));
    CHECK(contains(message, sentence));
  }
}

TEST_CASE("names of files of scores") {
  const SweepFiles files;
  CHECK(contains(message_of<Error>([&] { methods::find_method("scores:" + files.folder.path() + "/none.h5"); }),
                 "none.h5"));
  const std::string text = files.write("no HDF5", "t.h5");
  CHECK(contains(message_of<Error>([&] { methods::find_method("scores:" + text); }), text));
  for (const char* name : {"scores:", "scores:s.txt", "scores:s.h5x"})
    CHECK(contains(message_of<Error>([&] { methods::find_method(name); }), "write scores:FILE.h5"));
}
