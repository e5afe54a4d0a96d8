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

TEST_CASE("an error about an unknown key has its place and the most similar key") {
  const SweepFiles files;
  CHECK(contains(files.refusal("nam = \"x\"\n[[run]]\nmethods = \"exact\"\n"),
                 "s.toml:1:1: a sweep file has no key 'nam'."));
  CHECK(contains(files.refusal("nam = \"x\"\n"), "Did you mean 'name'?"));
  CHECK(contains(files.refusal("[defaults]\nseeds = 1\n  buget = 3\n"),
                 "s.toml:3:3: a run has no key 'buget'. Did you mean 'budgets'?"));
  CHECK(contains(files.refusal("[[run]]\nmethod = \"exact\"\n"), "Did you mean 'methods'?"));
  CHECK(contains(files.refusal("[[runs]]\nmethods = \"exact\"\n"), "Did you mean 'run'?"));
  CHECK(contains(files.refusal("[[run]]\nzzz = 1\n"), "It has traces, methods"));
}

TEST_CASE("an error about a value of the wrong kind has its place and what the key takes") {
  const SweepFiles files;
  const auto refused = [&](const std::string& line) {
    return files.refusal("[[run]]\nmethods = \"exact\"\n" + line + "\n");
  };
  CHECK(contains(refused("seeds = \"five\""),
                 "s.toml:3:9: 'seeds' takes a number of seeds, or a list of them, not the text 'five'"));
  CHECK(contains(refused("seeds = 0"), "s.toml:3:9: 'seeds' is 0; give a number of seeds from 1 to 100000"));
  CHECK(contains(refused("seeds = []"), "at least one seed"));
  CHECK(contains(refused("seeds = [1, -1]"), "s.toml:3:13: "));
  CHECK(contains(refused("seeds = [4294967296]"), "4294967296"));
  CHECK(contains(refused("budgets = 0.25"), "not the number 0.25"));
  CHECK(contains(refused("budgets = [\"30%\", \"0%\"]"), "s.toml:3:19: budget '0%' keeps nothing"));
  CHECK(contains(refused("budgets = []"), "not a list"));
  CHECK(
      contains(refused("layers = [0, \"1-3\"]"), "s.toml:3:14: 'layers' takes numbers of layers, not the text '1-3'"));
  CHECK(contains(refused("layers = [-1]"), "-1"));
  CHECK(contains(refused("window = 0"), "at least 1"));
  CHECK(contains(refused("window = true"), "not true"));
  CHECK(contains(refused("protocol = \"prefil\""), "Did you mean 'prefill'? It takes auto, decode, prefill, stream."));
  CHECK(contains(refused("protocol = 3"), "not the number 3"));
  CHECK(contains(refused("protect = [1]"), "s.toml:3:11: 'protect': give two numbers"));
  CHECK(contains(refused("protect_outside = [1]"), "s.toml:3:19: 'protect_outside': give two numbers"));
  CHECK(contains(refused("protect = 4"), "[first, last]"));
  CHECK(contains(refused("protect = [1, 2]\nprotect_outside = [1, 2]"), "not both"));
  CHECK(contains(refused("recall_sinks = 1"), "true or false"));
  CHECK(contains(refused("traces = 1"), "paths of traces"));
  CHECK(contains(refused("traces = 1979-05-27"), "dates"));
  CHECK(contains(refused("measure = \"clusterabilty\""), "Did you mean 'clusterability'?"));
  CHECK(contains(refused("name = 3"), "'name' takes a text"));
}

TEST_CASE("files that are not sweep files") {
  const SweepFiles files;
  CHECK(contains(files.refusal(""), "s.toml: has no run; add a block [[run]]"));
  CHECK(contains(files.refusal("# only words\n"), "has no run"));
  CHECK(contains(files.refusal("[run]\nmethods = \"exact\"\n"), "s.toml:1:1: write each run as a block [[run]]"));
  CHECK(contains(files.refusal("run = [1]\n"), "write each run as a block [[run]]"));
  CHECK(contains(files.refusal("run = []\n"), "empty"));
  CHECK(contains(files.refusal("defaults = 3\n"), "[defaults]"));
  CHECK(contains(files.refusal("[[run]]\ntraces = \"a.h5\"\n"), "run '1' has neither methods nor measures"));
  CHECK(contains(
      files.refusal("[[run]]\nmethods = \"exact\"\nname = \"a\"\n[[run]]\nmethods = \"exact\"\nname = \"a\"\n"),
      "s.toml:4:1: the run at "));
  CHECK(contains(files.refusal("[[run]]\nmethods = [\"exact\"\n"), "s.toml:2:20: this is not valid TOML"));
  CHECK(contains(files.refusal("a = 1\na = 2\n"), "s.toml:2:"));
  CHECK(contains(message_of<Error>([] { read_sweep("/nowhere/s.toml"); }), "/nowhere/s.toml: there is no such file"));
  CHECK(contains(message_of<Error>([&] { read_sweep(files.folder.path()); }), "folder"));
}

TEST_CASE("zip joins lists of the same length, of keys that can be joined") {
  const SweepFiles files;
  const std::string start = "[[run]]\nmethods = \"sink\"\ntraces = [\"a.h5\", \"b.h5\"]\n";
  const Sweep sweep = files.read(start + "budgets = [8, 9]\nzip = [\"traces\", \"budgets\"]\n");
  CHECK(sweep.runs[0].zip == std::vector<std::string>{"traces", "budgets"});
  CHECK(contains(files.refusal(start + "budgets = [8]\nzip = [\"traces\", \"budgets\"]\n"),
                 "s.toml:5:7: run '1' joins lists of different lengths: 2 items of 'traces', 1 of 'budgets'"));
  CHECK(contains(files.refusal(start + "zip = [\"traces\", \"layers\"]\n"), "joins 'layers', which is not a list"));
  CHECK(contains(files.refusal(start + "zip = [\"trace\"]\n"),
                 "s.toml:4:8: 'zip' cannot join 'trace'. Did you mean 'traces'?"));
}

TEST_CASE("an exclusion is a table of scalars") {
  const SweepFiles files;
  const std::string start = "[[run]]\nmethods = \"sink\"\n";
  const Sweep sweep = files.read(start + "exclude = [{ method = \"sink\", budget = 256 }, { sinks = 4 }]\n");
  REQUIRE(sweep.runs[0].exclusions.size() == 2);
  using Where = std::vector<std::pair<std::string, std::string>>;
  CHECK(sweep.runs[0].exclusions[0].where == Where{{"method", "sink"}, {"budget", "256"}});
  CHECK(sweep.runs[0].exclusions[1].where == Where{{"sinks", "4"}});
  CHECK(contains(files.refusal(start + "exclude = [\"sink\"]\n"), "s.toml:3:12: 'exclude' takes tables"));
  CHECK(contains(files.refusal(start + "exclude = [{ method = [\"sink\"] }]\n"), "not a list"));
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

TEST_CASE("deep nesting is refused before it is parsed") {
  const SweepFiles files;
  const auto many = [](const std::string& text, int times) {
    std::string out;
    for (int i = 0; i < times; ++i) out += text;
    return out;
  };
  const std::string brackets = "more than 16 brackets are open here", dots = "a key has more than 16 dots";
  CHECK(contains(files.refusal("\na" + many(".a", 15'000) + " = 1\n"), "s.toml:2:34: " + dots));
  CHECK(contains(files.refusal("[a" + many(" . a", 10'000) + "]\n"), dots));
  CHECK(contains(files.refusal("[a" + many(".\"a\"", 10'000) + "]\n"), dots));
  CHECK(contains(files.refusal("a = " + many("[", 30'000)), "s.toml:1:21: " + brackets));
  CHECK(contains(files.refusal("a = " + many("{a=", 10'000)), brackets));
  CHECK(contains(files.refusal("a = " + many("[{a.a=", 5'000)), brackets));
  // Strings that end where they seem not to, and the other way round.
  for (const char* text :
       {R"("""""")", R"("\"")", "''''''", R"('\')", R"("""\"""""")", R"("#")", "'''\n#'''''", R"("""a""""")"}) {
    CAPTURE(text);
    CHECK(contains(files.refusal("a = [" + std::string(text) + ", " + many("[", 10'000)), brackets));
  }
  // Dots and brackets that do not nest.
  CHECK_NOTHROW(files.read("name = '''" + many("[", 100) + "'''\ndescription = \"" + many(".\\\"{", 100) + "\"\n#" +
                           many("[", 100) + "\n[[run]]\nmethods = \"sink\"\nbudgets = [" + many("'0.5%', ", 100) +
                           "]\n"));
}

TEST_CASE("hostile TOML is an error with its place") {
  const SweepFiles files;
  const std::string invalid = "this is not valid TOML";
  CHECK(contains(files.refusal("a = 99999999999999999999\n"), "s.toml:1:25: " + invalid));
  CHECK(contains(files.refusal("a = 0x" + std::string(100'000, 'f') + "\n"), invalid));
  CHECK(contains(files.refusal("a = 1" + std::string(100'000, '0') + "e1\n"), "s.toml:1:"));
  CHECK(contains(files.refusal("name = \"\xC3\x28\"\n"), "s.toml:1:"));
  CHECK(contains(files.refusal(std::string("name = \"a\0b\"\n", 13)), "s.toml:1:"));
  CHECK(contains(files.refusal("a = \"" + std::string(500'000, 'x')), "s.toml:1:"));
  CHECK(contains(files.refusal("a = \"\"\"" + std::string(500'000, '\n')), invalid));
  CHECK(contains(files.refusal("defaults = 1979-05-27\n"), "s.toml:1:12: a sweep file has no dates or times"));
  CHECK(contains(files.refusal("[[run]]\nmethods = \"sink\"\nseeds = 07:32:00\n"),
                 "s.toml:3:9: a sweep file has no dates"));
  CHECK(contains(files.refusal("[[run]]\nmethods = \"sink\"\nwindow = inf\n"), "s.toml:3:"));
  CHECK(contains(files.refusal(std::string(1 << 20, '#') + "\n"), "s.toml: has 1048577 bytes, more than the 1048576"));
  std::string keys;
  for (int i = 0; i < 70'000; ++i) keys += "k" + std::to_string(i) + " = 1\n";
  CHECK(contains(files.refusal(keys), "s.toml:1:1: "));
}

TEST_CASE("no text of a sweep file commands a terminal or breaks a line") {
  const SweepFiles files;
  const std::string run = "[[run]]\nmethods = \"sink\"\n";
  for (const char* bad : {"\\u001b[31m", "\\n", "\\u009b1m"}) {
    CAPTURE(bad);
    const auto text = [&](const std::string& key) { return fmt::format("{} = \"a{}\"\n", key, bad); };
    for (const char* key : {"name", "description"}) {
      CHECK(contains(files.refusal(text(key) + run), "s.toml:1:"));
      CHECK(contains(files.refusal(text(key) + run), "this text has a control character"));
    }
    CHECK(contains(files.refusal(run + text("name")), "s.toml:3:8: this text has a control character"));
    CHECK(contains(files.refusal(fmt::format("\"a{}\" = 1\n", bad) + run), "this key has a control character"));
  }
}
