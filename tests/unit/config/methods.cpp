// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <kvbench/methods/registry.hpp>
#include <unit/config/files.hpp>

using namespace kvbench;
using namespace kvbench::config;
using namespace kvbench::testing;
using trace::test::contains;

namespace {

/// "subgen[t=2]" ... of the first run.
std::vector<std::string> methods_of(const Sweep& sweep) {
  std::vector<std::string> out;
  for (const MethodChoice& choice : sweep.runs.at(0).request.methods) {
    out.push_back(choice.info->name + (choice.params.text().empty() ? "" : "[" + choice.params.text() + "]"));
  }
  return out;
}

std::string run_with(const std::string& methods) { return "[[run]]\nmethods = " + methods + "\n"; }

}  // namespace

TEST_CASE("methods by name, by alias and all of them") {
  const SweepFiles files;
  CHECK(methods_of(files.read(run_with("\"snapkv\""))) == std::vector<std::string>{"snapkv"});
  CHECK(methods_of(files.read(run_with("[\"clustergen\", \"exact\"]"))) == std::vector<std::string>{"subgen-kcenter", "exact"});
  CHECK(methods_of(files.read(run_with("\"all\""))).size() == all_methods().size());
}

TEST_CASE("lists of parameters expand to all combinations, the first one slowest") {
  const SweepFiles files;
  const Sweep sweep =
      files.read(run_with("[{name = \"subgen\", s = [8, 16], t = [1, 2]}, {name = \"snapkv\", pooling = \"mean\"}]"));
  CHECK(methods_of(sweep) == std::vector<std::string>{"subgen[t=1;s=8]", "subgen[t=2;s=8]", "subgen[t=1;s=16]",
                                                      "subgen[t=2;s=16]", "snapkv[pooling=mean]"});
}

TEST_CASE("numbers, flags and texts reach the parameters") {
  const SweepFiles files;
  const Sweep sweep =
      files.read(run_with("[{name = \"subgen\", delta = 0.5}, {name = \"subgen\", delta = 4}, {name = \"subgen-kcenter\", "
                          "values = true, recent = 1e-1}]"));
  CHECK(methods_of(sweep) ==
        std::vector<std::string>{"subgen[delta=0.5]", "subgen[delta=4]", "subgen-kcenter[recent=0.1;values=true]"});
}

TEST_CASE("errors about methods have the place of the value at fault") {
  const SweepFiles files;
  const auto refused = [&](const std::string& methods) { return files.refusal(run_with(methods)); };
  CHECK(contains(refused("[\"exact\", \"snapvk\"]"), "s.toml:2:21: there is no method 'snapvk'. Did you mean 'snapkv'?"));
  CHECK(contains(refused("[{name = \"snapk\"}]"), "s.toml:2:20: there is no method 'snapk'."));
  CHECK(contains(refused("[{name = \"snapkv\", windw = 3}]"),
                 "s.toml:2:30: method 'snapkv' has no parameter 'windw'. Did you mean 'window'?"));
  CHECK(contains(refused("[{name = \"snapkv\", kernel = 3, window = [1, \"x\"]}]"),
                 "s.toml:2:55: parameter 'snapkv.window' is 'x'"));
  CHECK(contains(refused("[{name = \"subgen\", delta = [1, 2], delta_r = [0, 3]}]"), "s.toml:2:12: "));  // wrong together only
  CHECK(contains(refused("[{name = \"snapkv\", window = []}]"), "parameter 'window' has no value"));
  CHECK(contains(refused("[{name = \"snapkv\", window = [[1]]}]"), "not a list"));
  CHECK(contains(refused("[{window = 3}]"), "needs the name of the method"));
  CHECK(contains(refused("[3]"), "s.toml:2:12: a method is a name"));
  CHECK(contains(refused("[\"exact\", \"exact\"]"), "s.toml:2:21: 'exact' with its default parameters is listed twice"));
  CHECK(contains(refused("[{name = \"snapkv\", window = [32, 16]}, \"snapkv\"]"), "is listed twice"));
}

TEST_CASE("parameters that zip names advance together") {
  const SweepFiles files;
  const auto texts = [&](const std::string& table) {
    std::vector<std::string> out;
    const Sweep sweep = files.read("[[run]]\nmethods = " + table + "\n");
    for (const MethodChoice& method : sweep.runs[0].request.methods) out.push_back(method.params.text());
    return out;
  };
  using Texts = std::vector<std::string>;
  CHECK(texts("{ name = \"snapkv\", window = [8, 16], kernel = [3, 7], zip = [\"window\", \"kernel\"] }") ==
        Texts{"window=8;kernel=3", "window=16"});  // 7 is the default
  CHECK(texts("{ name = \"snapkv\", window = [8, 16], pooling = [\"max\", \"mean\"], kernel = [3, 9], zip = [\"window\", "
              "\"kernel\"] }")
            .size() == 4);
  const std::string start = "[[run]]\nmethods = { name = \"snapkv\", window = [8, 16], kernel = 3, ";
  CHECK(contains(files.refusal(start + "zip = [\"window\", \"kernel\"] }\n"),
                 "joins lists of different lengths: 2 items of 'window', 1 of 'kernel'"));
  CHECK(contains(files.refusal(start + "zip = [\"pooling\"] }\n"),
                 "'zip' names 'pooling', which is not a parameter of this table"));
}
