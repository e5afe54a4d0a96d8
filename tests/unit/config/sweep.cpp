// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <sstream>

#include <kvbench/methods/registry.hpp>
#include <unit/config/files.hpp>

using namespace kvbench;
using namespace kvbench::measures;
using namespace kvbench::methods;
using namespace kvbench::replay;
using namespace kvbench::config;
using namespace kvbench::testing;

TEST_CASE("a run has the values of [defaults] for keys that it does not set") {
  const SweepFiles files;
  const Sweep sweep = files.read(R"(
name = "figure"
description = "what it shows"
[defaults]
traces = "a.h5"
methods = "snapkv"
budgets = ["25%", 256]
seeds = 3
layers = [0, 4]
protect_outside = [256, 0]
[[run]]
[[run]]
name = "other"
traces = ["b.h5", "../c.h5"]
methods = ["sink", "exact"]
budgets = 64
seeds = [7, 9]
layers = []
heads = 1
prompts = ["0", "x"]
protocol = ["decode", "stream"]
device = "cpu"
decoded = "keep"
window = 32
protect = [4, 64]
dense_layers = 2
recall_sinks = true
measure = ["similarity-by-distance", "clusterability"]
)");
  CHECK(sweep.name == "figure");
  CHECK(sweep.description == "what it shows");
  REQUIRE(sweep.runs.size() == 2);

  const SweepRun& first = sweep.runs[0];
  CHECK(first.name == "1");
  REQUIRE(first.traces.size() == 1);
  CHECK(first.traces[0].path == files.folder / "a.h5");
  CHECK(first.request.methods.size() == 1);
  CHECK(first.request.budgets[1].text() == "256");
  CHECK(first.request.seeds == std::vector<std::uint32_t>{0, 1, 2});
  CHECK(first.request.layers == std::vector<std::int64_t>{0, 4});
  CHECK((first.request.protect_first == 256 && first.request.protect_last == 0 && first.request.protect_outside));
  CHECK(first.protocols == std::vector{Protocol::automatic});
  CHECK(first.devices.empty());
  CHECK(first.measures.empty());

  const SweepRun& second = sweep.runs[1];
  CHECK(second.name == "other");
  CHECK(second.traces[0].path == files.folder / "b.h5");
  CHECK(second.traces[1].path == (std::filesystem::path(files.folder.path()).parent_path() / "c.h5").string());
  CHECK(second.request.methods[1].info->name == "exact");
  REQUIRE(second.request.budgets.size() == 1);
  CHECK(second.request.budgets[0].text() == "64");
  CHECK(second.request.seeds == std::vector<std::uint32_t>{7, 9});
  CHECK(second.request.layers.empty());
  CHECK(second.request.kv_heads == std::vector<std::int64_t>{1});
  CHECK(second.request.prompts == std::vector<std::string>{"0", "x"});
  CHECK(second.protocols == std::vector{Protocol::decode, Protocol::stream});
  CHECK(second.devices == std::vector<std::string>{"cpu"});
  CHECK(second.request.decoded == Decoded::keep);
  CHECK(second.request.window == 32);
  CHECK((second.request.protect_first == 4 && second.request.protect_last == 64 && !second.request.protect_outside));
  CHECK(second.request.dense_layers == 2);
  CHECK(second.request.recall_sinks);
  CHECK(second.measures == std::vector{Measure::similarity_by_distance, Measure::clusterability});
}

TEST_CASE("the name of the file is the default name, and runs share no state") {
  const SweepFiles files;
  const Sweep sweep = files.read("[[run]]\nmethods = \"exact\"\nwindow = 9\n[[run]]\nmeasure = \"clusterability\"\n");
  CHECK(sweep.name == "s");
  CHECK(!sweep.runs[1].request.window.has_value());
  CHECK(sweep.runs[1].request.methods.empty());
  CHECK(sweep.runs[1].request.seeds.size() == 5);
  CHECK(sweep.runs[1].request.budgets[0].text() == "25%");
}

TEST_CASE("traces of the command line replace those of the file") {
  const SweepFiles files;
  Sweep sweep = files.read("[[run]]\nmethods = \"exact\"\ntraces = \"a.h5\"\n");
  use_traces(sweep, {"x.h5", "y.h5"}, "--trace");
  REQUIRE(sweep.runs[0].traces.size() == 2);
  CHECK(sweep.runs[0].traces[1].path == "y.h5");  // from where the command runs
  CHECK(sweep.runs[0].traces[1].place.text() == "--trace");
}

TEST_CASE("zip joins lists of the same length, of keys that can be joined") {
  const SweepFiles files;
  const std::string start = "[[run]]\nmethods = \"sink\"\ntraces = [\"a.h5\", \"b.h5\"]\n";
  const Sweep sweep = files.read(start + "budgets = [8, 9]\nzip = [\"traces\", \"budgets\"]\n");
  CHECK(sweep.runs[0].zip == std::vector<std::string>{"traces", "budgets"});
}

TEST_CASE("an exclusion is a table of scalars") {
  const SweepFiles files;
  const std::string start = "[[run]]\nmethods = \"sink\"\n";
  const Sweep sweep = files.read(start + "exclude = [{ method = \"sink\", budget = 256 }, { sinks = 4 }]\n");
  REQUIRE(sweep.runs[0].exclusions.size() == 2);
  using Where = std::vector<std::pair<std::string, std::string>>;
  CHECK(sweep.runs[0].exclusions[0].where == Where{{"method", "sink"}, {"budget", "256"}});
  CHECK(sweep.runs[0].exclusions[1].where == Where{{"sinks", "4"}});
}

TEST_CASE("the example is valid, also with any of its commented lines") {
  const SweepFiles files;
  const std::string example = example_sweep();
  const Sweep sweep = files.read(example);
  CHECK(sweep.runs.size() == 2);
  CHECK(sweep.published.size() == 1);
  // Keys, and methods with all their parameters.
  std::istringstream lines(example);
  std::string line, methods;
  std::size_t keys = 0;
  while (std::getline(lines, line)) {
    if (line.starts_with("#   { name")) {
      methods += line.substr(1) + "\n";
    } else if (line.starts_with("#   ") && line.find(" = ") < line.find(':')) {
      CAPTURE(line);
      ++keys;
      const std::string key = line.substr(4), needed = key.starts_with("methods") ? "" : "methods = \"subgen\"\n";
      const bool pairs = key.starts_with("zip");
      CHECK_NOTHROW(files.read("[[run]]\n" + needed + (pairs ? "traces = \"t.h5\"\n" : "") + key + "\n"));
    }
  }
  CHECK(keys == 19);
  const Sweep all = files.read("[[run]]\nmethods = [\n" + methods + "]\n");
  CHECK(all.runs[0].request.methods.size() == all_methods().size());
  for (const MethodChoice& method : all.runs[0].request.methods) CHECK(method.params.text().empty());
}

TEST_CASE("dots and brackets that do not nest are no deep nesting") {
  const SweepFiles files;
  const auto many = [](const std::string& text, int times) {
    std::string out;
    for (int i = 0; i < times; ++i) out += text;
    return out;
  };
  CHECK_NOTHROW(files.read("name = '''" + many("[", 100) + "'''\ndescription = \"" + many(".\\\"{", 100) + "\"\n#" +
                           many("[", 100) + "\n[[run]]\nmethods = \"sink\"\nbudgets = [" + many("'0.5%', ", 100) +
                           "]\n"));
}
