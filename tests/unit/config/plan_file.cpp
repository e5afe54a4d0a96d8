// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <filesystem>

#include <kvbench/config/named_files.hpp>
#include <kvbench/config/plan_file.hpp>
#include <kvbench/methods/registry.hpp>
#include <unit/config/files.hpp>

using namespace kvbench;
using namespace kvbench::config;
using namespace kvbench::testing;
using kvbench::testing::SweepFiles;

namespace {

constexpr const char* two_layers = R"(model = "m"
model_layers = 2
traces = ["ab"]

[[plans]]
budget = "25%mem"
layers = [
  { layer = 0, method = "h2o", budget = "12.5%mem" },
  { layer = 1, method = "snapkv[window=16]", budget = "37.5%mem" },
]
)";

std::string with(std::string from, std::string to) {
  std::string text = two_layers;
  const std::size_t at = text.find(from);
  REQUIRE(at != text.npos);
  return text.replace(at, from.size(), to);
}

const methods::MethodInfo& find(const std::string& path) { return methods::find_method("plan:" + path); }

methods::LayerPlan plan_in(const std::string& path) { return find(path).bind({}).as<methods::LayerPlan>(); }

}  // namespace

TEST_CASE("a plan names the method and the budget of each layer") {
  const SweepFiles files;
  const methods::LayerPlan plan = plan_in(files.write(two_layers, "p.toml"));
  CHECK(plan.model == "m");
  CHECK(plan.model_layers == 2);
  REQUIRE(plan.budgets.size() == 1);
  CHECK(plan.budgets[0].budget.text() == "25%mem");
  const methods::LayerMethod& second = *plan.budgets[0].at(1, 0);
  CHECK(second.info->name == "snapkv");
  CHECK(second.params.text() == "window=16");
  CHECK(second.budget.text() == "37.5%mem");
}

TEST_CASE("a plan names files of parameters relative to its folder") {
  const SweepFiles files;
  std::filesystem::create_directory(files.folder / "sub");
  files.write("0 0\n", "o.txt");
  const std::string text = with("snapkv[window=16]", "chelsea[outliers=../o.txt]");
  const methods::LayerPlan plan = plan_in(files.write(text, "sub/p.toml"));
  CHECK(plan.budgets[0].at(1, 0)->params.text() == "outliers=" + (files.folder / "o.txt"));
  const methods::MethodInfo& chelsea = *plan.budgets[0].at(1, 0)->info;
  const std::string here = std::filesystem::relative(files.folder / "o.txt");  // from where commands name it
  const std::vector<methods::Assignment> settings{{"outliers", here}};
  const std::string beside = method_beside(files.folder / "other/q.toml", chelsea, chelsea.bind(settings));
  CHECK(beside == "chelsea[outliers=../o.txt]");
}

TEST_CASE("a layer has one line, or one for each of its kv heads") {
  const SweepFiles files;
  const std::string text = with("layer = 1", "layer = 1, kv_head = 0");
  const std::string other = "  { layer = 1, kv_head = 1, method = \"int4\", budget = \"35%mem\" },\n]";
  const std::string both = std::string(text).replace(text.rfind(']'), 1, other);
  const methods::LayerPlan plan = plan_in(files.write(both, "p.toml"));  // (12.5 + (37.5 + 35) / 2) / 2 < 25
  CHECK(plan.budgets[0].at(0, 5)->info->name == "h2o");
  CHECK(plan.budgets[0].at(1, 0)->info->name == "snapkv");
  CHECK(plan.budgets[0].at(1, 1)->info->name == "int4");
  CHECK(plan.budgets[0].at(1, 2) == nullptr);
  CHECK(plan_text(plan, {{}, {"ab"}}) == both);
  const auto refusal = [&](const std::string& from, const std::string& to) {
    std::string changed = both;
    files.write(changed.replace(changed.find(from), from.size(), to), "p.toml");
    return message_of<Error>([&] { find(files.folder / "p.toml"); });
  };
  CHECK(contains(refusal("kv_head = 1", "kv_head = 0"), "kv head 0 of layer 1 has two lines"));
  CHECK(contains(refusal(", kv_head = 1", ""), "layer 1 has two lines"));
  CHECK(contains(refusal(", kv_head = 0", ""), "kv head 1 of layer 1 has two lines"));
  CHECK(contains(refusal("kv_head = 1", "kv_head = -1"), "a kv head is a whole number from 0"));
  CHECK(contains(refusal("35%mem", "38%mem"), "the layers hold 25.125 % of the memory on average"));
  CHECK(contains(refusal("\"h2o\"", "\"adakv(snapkv)\""), "adakv(snapkv) needs all kv heads of a layer at once"));
}

TEST_CASE("a plan that was written is the plan that is read") {
  const SweepFiles files;
  const methods::LayerPlan plan = plan_in(files.write(two_layers, "p.toml"));
  CHECK(plan_text(plan, {{}, {"ab"}}) == two_layers);
  CHECK(plan_text(plan, {"why\n\nso\n", {"ab"}}) == std::string("# why\n#\n# so\n") + two_layers);
  for (const bool confirmed : {false, true}) {
    const std::string text = plan_text(plan, {{}, {"ab"}, {}, {{.confirmed = confirmed}}});
    CHECK(contains(text, confirmed ? "\nconfirmed = true\nlayers" : "\nconfirmed = false\nlayers"));
    CHECK(plan_text(plan_in(files.write(text, "p.toml")), {{}, {"ab"}}) == two_layers);
  }
  const std::string told = plan_text(plan, {{}, {"ab"}, {}, {{.settings = {"a \"b\" \\ c", "d"}, .beside = {"So."}}}});
  CHECK(contains(told, "\nsettings = [\"a \\\"b\\\" \\\\ c\", \"d\"]\nbeside = [\"So.\"]\nlayers"));
  CHECK(plan_text(plan_in(files.write(told, "p.toml")), {{}, {"ab"}}) == two_layers);
  files.write(with("layers = [\n", "settings = [1]\nlayers = [\n"), "p.toml");
  CHECK(contains(message_of<Error>([&] { find(files.folder / "p.toml"); }), "each of them is a text, not"));
  files.write(with("layers = [\n", "confirmed = 1\nlayers = [\n"), "p.toml");
  CHECK(contains(message_of<Error>([&] { find(files.folder / "p.toml"); }), "'confirmed' is true or false, not"));
}

TEST_CASE("files of methods are named from the folder of the plan") {
  const std::filesystem::path here = std::filesystem::current_path();
  const auto name_beside = [](const std::string& path, const std::string& name) {
    return method_beside(path, methods::MethodInfo{.name = name}, methods::find_method("h2o").bind({}));
  };
  CHECK(name_beside("", "adakv(scores:a/s.h5)+q8_0") == "adakv(scores:a/s.h5)+q8_0");
  CHECK(name_beside((here / "out/p.toml").string(), "adakv(scores:a/s.h5)+q8_0") == "adakv(scores:../a/s.h5)+q8_0");
  CHECK(name_beside("out/p.toml", "out/mine.py:M") == "mine.py:M");
  CHECK(name_beside("out/p.toml", "scores:/s.h5") == "scores:/s.h5");
}

TEST_CASE("an edited plan is another method, and the same content is the same one") {
  const SweepFiles files;
  const std::string path = files.write(two_layers, "p.toml");
  const methods::MethodInfo& before = find(path);
  CHECK(&find(path) == &before);
  files.write(with("12.5%mem", "12.4%mem"), "p.toml");
  const methods::MethodInfo& after = find(path);
  CHECK(&after != &before);
  CHECK(after.name == before.name);
  CHECK(before.bind({}).text() != after.bind({}).text());
  CHECK(before.bind({}).text().size() == std::string("sha256=").size() + 12);
  const methods::Assignment other{"sha256", before.bind({}).text().substr(7)};
  CHECK(contains(message_of<Error>([&] { after.bind({&other, 1}); }), "the file has changed"));
  const methods::Assignment own{"sha256", after.bind({}).text().substr(7)}, none{"window", "16"};
  CHECK(after.bind({&own, 1}).text() == after.bind({}).text());
  CHECK(contains(message_of<Error>([&] { after.bind({&none, 1}); }), "has no parameter 'window'"));
}

TEST_CASE("what is no plan is refused with its place") {
  const SweepFiles files;
  const struct {
    std::string from, to, message;
  } faults[] = {
      {"model = \"m\"\n", "", "'model' is missing"},
      {"model = \"m\"", "model = 3", ":1:9: 'model' is a text, not the number 3"},
      {"model_layers = 2", "model_layers = 0", "'model_layers' is a whole number from 1 to 10000, not the number 0"},
      {"model_layers = 2", "model_layers = \"2\"", "not the text '2'"},
      {"model_layers = 2", "model_layers = 1", "a layer is a whole number from 0 to 0, not the number 1"},
      {"traces = [\"ab\"]", "traces = []", "'traces' are a list with at least one item"},
      {"traces = [\"ab\"]", "traces = [\"ab\"]\nlayer = 1", "'layer'"},
      {"[[plans]]", "[plans]", "'plans' are a list with at least one item, not a table"},
      {"budget = \"25%mem\"\n", "", "'budget' is missing"},
      {"budget = \"25%mem\"", "budget = \"25%\"", "a plan divides memory; write a budget such as \"25%mem\""},
      {"budget = \"25%mem\"", "budget = \"a lot\"", "budget 'a lot'"},
      {"budget = \"25%mem\"", "budget = \"24.9%mem\"", "the layers hold 25 % of the memory on average"},
      {"layer = 1", "layer = 0", "layer 0 has two lines"},
      {"  { layer = 0, method = \"h2o\", budget = \"12.5%mem\" },\n", "",
       "1 of 2 layers hold 37.5 % of the memory on average, and the plan is for 25%mem; lower their budgets, or "
       "add"},
      {"layer = 1", "layer = 1.5", "a layer is a whole number from 0 to 1"},
      {"layer = 1, ", "", "'layer' is missing"},
      {"layer = 1", "layers = 1", "did you mean 'layer'"},
      {"\"h2o\"", "\"h20\"", "there is no method 'h20'"},
      {"\"h2o\"", "\"pyramidkv\"", "pyramidkv divides its budget among layers itself"},
      {"\"h2o\"", "\"plan:x.toml\"", "'plan:x.toml' is a plan; name a method for each layer"},
      {"\"h2o\"", "\"plan:x.toml+q8_0\"", "is a plan; name a method for each layer"},
      {"\"h2o\"", "\"h2o[window=3]\"", "window"},
      {"\"h2o\"", "\"h2o[\"", "brackets stand once, at the end"},
      {"\"h2o\"", "\"all\"", "there is no method 'all'"},
      {"12.5%mem", "0%mem", "keeps nothing"},
      {"12.5%mem", "101%mem", "is more than the whole"},
      {"12.5%mem", "12.5%read", "a plan divides memory"},
      {"[[plans]]", "[[plans", "this is not valid TOML"},
  };
  for (const auto& [from, to, message] : faults) {
    CAPTURE(to);
    const std::string path = files.write(with(from, to), "p.toml");
    std::string said = message_of<Error>([&] { find(path); });
    for (char& c : said) c = c == 'D' ? 'd' : c;
    CHECK_MESSAGE(contains(said, message), said);
    CHECK(said.find("p.toml:") != said.npos);
  }
}

TEST_CASE("a file that is missing or of another kind is refused by its path") {
  const SweepFiles files;
  CHECK(contains(message_of<Error>([&] { find(files.folder / "none.toml"); }), "none.toml"));
  CHECK(contains(message_of<Error>([&] { find(files.folder.path()); }), "is a folder; name a plan such as"));
  CHECK(contains(message_of<Error>([&] { find(files.write("GGUF", "m.gguf")); }), "is not a plan. It is a GGUF model"));
  for (const char* name : {"adakv(plan:p.toml)", "h2o+plan:p.toml"})
    CHECK(contains(message_of<Error>([&] { methods::find_method(name); }), "a plan stands for a whole method"));
}

TEST_CASE("two plans for one budget are refused, for two budgets taken") {
  const SweepFiles files;
  const std::string more =
      "\n[[plans]]\nbudget = \"25%mem\"\nlayers = [{ layer = 0, method = \"h2o\", budget = "
      "\"1%mem\" }]\n";
  CHECK(contains(message_of<Error>([&] { find(files.write(two_layers + more, "p.toml")); }),
                 "there are two plans for 25%mem"));
  std::string other = more;
  other.replace(other.find("25%"), 3, "50%");
  CHECK(plan_in(files.write(two_layers + other, "p.toml")).budgets.size() == 2);
}

TEST_CASE("paths of plans in a sweep file begin in its folder") {
  const SweepFiles files;
  files.write(two_layers, "p.toml");
  const config::Sweep sweep = files.read("[[run]]\ntraces = \"a.h5\"\nmethods = [\"plan:p.toml\", \"h2o\"]\n");
  CHECK(sweep.runs[0].request.methods[0].info->name == "plan:" + (files.folder / "p.toml"));
}
