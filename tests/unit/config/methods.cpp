// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <kvbench/config/field_names.hpp>
#include <kvbench/config/method_flags.hpp>
#include <kvbench/config/method_list.hpp>
#include <kvbench/config/named_files.hpp>
#include <kvbench/config/run_keys.hpp>
#include <kvbench/methods/sets.hpp>

#include <unit/config/files.hpp>

using namespace kvbench;
using namespace kvbench::config;
using namespace kvbench::methods;
using namespace kvbench::replay;
using namespace kvbench::testing;

namespace {

using Names = std::vector<std::string>;

/// "subgen[t=2]" ...
Names names_of(const std::vector<MethodChoice>& choices) {
  Names out;
  for (const MethodChoice& choice : choices) {
    out.push_back(choice.info->name + (choice.params.text().empty() ? "" : "[" + choice.params.text() + "]"));
  }
  return out;
}

/// Those of the first run.
Names methods_of(const Sweep& sweep) { return names_of(sweep.runs.at(0).request.methods); }

std::string run_with(const std::string& methods) { return "[[run]]\nmethods = " + methods + "\n"; }

}  // namespace

TEST_CASE("methods by name, by alias and all of them") {
  const SweepFiles files;
  CHECK(methods_of(files.read(run_with("\"snapkv\""))) == std::vector<std::string>{"snapkv"});
  CHECK(methods_of(files.read(run_with("[\"clustergen\", \"exact\"]"))) ==
        std::vector<std::string>{"subgen-kcenter", "exact"});
  CHECK(methods_of(files.read(run_with("\"all\""))).size() == rows_of_set("all").size());
  CHECK(methods_of(files.read(run_with("[\"snapkv[window=64]\", \"SnapKV(kernel=5)\"]"))) ==
        Names{"snapkv[window=64]", "snapkv[kernel=5]"});
}

TEST_CASE("files of parameters are relative to the folder of the sweep file, and words are not") {
  const SweepFiles files;
  const std::string folder = files.folder.path();
  files.write("1 0\n", "t.tsv"), files.write("0 0\n", "o.txt");
  const std::string duo = "duo[table=" + folder + "/t.tsv]";
  for (const char* method : {"\"duo[table=t.tsv]\"", "{ name = \"duo\", table = \"./x/../t.tsv\" }"})
    CHECK(methods_of(files.read(run_with(method))) == Names{duo});
  CHECK(methods_of(files.read(run_with("\"duo[table=" + folder + "/t.tsv]\""))) == Names{duo});
  CHECK(methods_of(files.read(run_with("{ name = \"chelsea\", outliers = [\"auto\", \"none\", \"o.txt\"] }"))) ==
        Names{"chelsea[outliers=auto]", "chelsea", "chelsea[outliers=" + folder + "/o.txt]"});
  const std::string claim =
      "budgets = \"25%\"\n[[published]]\nclaim = \"c\"\nmetric = \"rel_err_mean\"\n"
      "relations = [{ a = \"duo[table=t.tsv]@25%\", is = \"lower\", b = \"duo\" }]\n"
      "rows = [{ method = \"duo\", params = \"table=t.tsv\" }]\n";
  const Sweep sweep = files.read("[[run]]\nmethods = [\"duo\", \"duo[table=t.tsv]\"]\n" + claim);
  CHECK(sweep.published.at(0).claim.relations.at(0).a == duo + "@25%");
  CHECK("duo[" + sweep.published.at(0).rows.at(0).at(1).second + "]" == duo);
}

TEST_CASE("the file of a method in Python is relative to the folder of the sweep file") {
  const SweepFiles files;  // without a Python, the message has the name
  const std::string mine = fmt::format("'{}/mine.py", files.folder.path());
  for (const auto& [methods, name] : {std::pair{"\"mine.py:M\"", mine + ":M'"},
                                      {"\"./sub/../mine.py:M\"", mine + ":M'"},
                                      {"\"mine.py:M(a=1)\"", mine + ":M'"},
                                      {"\"mine.py:M+kivi4\"", mine + ":M'"},
                                      {"{ name = \"mine.py:M\", a = [1, 2] }", mine + ":M'"},
                                      {"\"/usr/mine.py:M\"", "'/usr/mine.py:M'"},
                                      {"\"py:M\"", "'py:M'"}}) {
    CAPTURE(methods);
    CHECK(contains(files.refusal(run_with(methods)), name + " is written in Python"));
  }
  const auto in_folder = [](const char* name) { return method_name({"a/s.toml"}, *parse_method_text(name)).text(); };
  CHECK(in_folder("../mine.py:M[x=1]") == "mine.py:M[x=1]");
  CHECK(in_folder("adakv(scores:b=1/s.h5)+int8[alpha=0]") == "adakv(scores:a/b=1/s.h5)+int8[alpha=0]");
  CHECK(in_folder("plan:../b/p.toml") == "plan:b/p.toml");
  CHECK(in_folder("snapkv") == "snapkv");
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
      files.read(run_with("[{name = \"subgen\", delta = 0.5}, {name = \"subgen\", delta = 4}, {name = "
                          "\"subgen-kcenter\", values = true, recent = 1e-1}]"));
  CHECK(methods_of(sweep) ==
        std::vector<std::string>{"subgen[delta=0.5]", "subgen[delta=4]", "subgen-kcenter[recent=0.1;values=true]"});
}

TEST_CASE("errors about methods have the place of the value at fault") {
  const SweepFiles files;
  const auto refused = [&](const std::string& methods) { return files.refusal(run_with(methods)); };
  CHECK(
      contains(refused("[\"exact\", \"snapvk\"]"), "s.toml:2:21: there is no method 'snapvk'. Did you mean 'snapkv'?"));
  CHECK(contains(refused("[{name = \"snapk\"}]"), "s.toml:2:20: there is no method 'snapk'."));
  CHECK(contains(refused("[{name = \"snapkv\", windw = 3}]"),
                 "s.toml:2:30: method 'snapkv' has no parameter 'windw'. Did you mean 'window'?"));
  CHECK(contains(refused("[{name = \"snapkv\", kernel = 3, window = [1, \"x\"]}]"),
                 "s.toml:2:55: parameter 'snapkv.window' is 'x'"));
  CHECK(contains(refused("[{name = \"subgen\", delta = [1, 2], delta_r = [0, 3]}]"),
                 "s.toml:2:12: "));  // wrong together only
  CHECK(contains(refused("[{name = \"snapkv\", window = []}]"), "parameter 'window' has no value"));
  CHECK(contains(refused("[{name = \"snapkv\", window = [[1]]}]"), "not a list"));
  CHECK(contains(refused("[{window = 3}]"), "needs the name of the method"));
  CHECK(contains(refused("[3]"), "s.toml:2:12: a method is a name"));
  CHECK(
      contains(refused("[\"exact\", \"exact\"]"), "s.toml:2:21: 'exact' with its default parameters is listed twice"));
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
  CHECK(texts("{ name = \"snapkv\", window = [8, 16], pooling = [\"max\", \"mean\"], kernel = [3, 9], zip = "
              "[\"window\", \"kernel\"] }")
            .size() == 4);
  const std::string start = "[[run]]\nmethods = { name = \"snapkv\", window = [8, 16], kernel = 3, ";
  CHECK(contains(files.refusal(start + "zip = [\"window\", \"kernel\"] }\n"),
                 "joins lists of different lengths: 2 items of 'window', 1 of 'kernel'"));
  CHECK(contains(files.refusal(start + "zip = [\"pooling\"] }\n"),
                 "'zip' names 'pooling', which is not a parameter of this table"));
}

TEST_CASE("flags name several sets of parameters of a method") {
  const auto names = [](const Names& methods, const Names& settings = {}) {
    return names_of(parse_methods(methods, settings));
  };
  CHECK(names({"snapkv[window=64,kernel=5],snapkv", "sink"}) == Names{"snapkv[window=64;kernel=5]", "snapkv", "sink"});
  CHECK(names({"snapkv[window=64;kernel=5]"}) == Names{"snapkv[window=64;kernel=5]"});  // as rows print it
  CHECK(names({"streamingllm[sinks=2]"}) == Names{"sink[sinks=2]"});
  CHECK(names({"snapkv,snapkv[],snapkv[window=32]"}) == Names{"snapkv"});  // the same parameters
  CHECK(names({"all"}).size() == rows_of_set("all").size());
  CHECK(names({"all,snapkv[window=64]"}).back() == "snapkv[window=64]");
  const Names few = names({"Families"}), every = names({"all"});
  CHECK(few.size() == rows_of_set("families").size());
  for (const std::string& one : few) CHECK(std::ranges::find(every, one) != every.end());
}

TEST_CASE("a setting holds for every set of parameters that does not give it itself") {
  const auto names = [](const Names& methods, const Names& settings) {
    return names_of(parse_methods(methods, settings));
  };
  CHECK(names({"snapkv[window=64],snapkv[kernel=5],sink"}, {"snapkv.window=16"}) ==
        Names{"snapkv[window=64]", "snapkv[window=16;kernel=5]", "sink"});
  CHECK(names({"sink"}, {"streamingllm.sinks=2"}) == Names{"sink[sinks=2]"});
  const Names all = names({"all"}, {"h2o.heavy=1"});
  CHECK(std::ranges::count(all, "h2o[heavy=1]") == 1);
  CHECK(std::ranges::count(all, "h2o[heavy=1;per=query_head]") == 1);
  CHECK(names({"all"}, {"h2o.per=query_head"}).size() == rows_of_set("all").size() - 1);  // two rows become one
}

TEST_CASE("lists in flags and in files say the same of an item that names no method") {
  const SweepFiles files;
  for (const char* item : {"snapkv[window=64", "snapkv[64]", "snapkv[a=1,a=2]", "snapvk", "adakv", "adakv(snapkv",
                           "adokv(snapkv)", "snapkv+", "plan:", "scores:"}) {
    CAPTURE(item);
    std::string of_flag = message_of<Error>([&] { parse_methods({item}, {}); });
    const std::string field = "`methods` ";  // a file says the place instead
    if (of_flag.starts_with(field)) of_flag.erase(0, field.size());
    CHECK(files.refusal(run_with(fmt::format("\"{}\"", item))) == fmt::format("s.toml:2:11: {}", of_flag));
  }
}

TEST_CASE("an error in a list says what a comma and a bracket are, where a path may have one") {
  const std::string hint =
      " In a list of methods a comma parts names and square brackets hold settings; rename a file ";
  const auto says = [&](const char* list) {
    return contains(message_of<Error>([&] { parse_methods({list}, {}); }), hint);
  };
  for (const char* list : {"plan:a,b.toml", "sink,plan:a,b.toml", "plan:a[b.toml", "scores:a,b.h5", "scores:a[1].h5",
                           "mi,ne.py:A", "plan:a.toml,b.toml"}) {
    CAPTURE(list);
    CHECK(says(list));
  }
  for (const char* list : {"snapvk", "snapvk,sink", "plan:a.toml", "plan:a.toml,sink", "plan:a.toml,-sink",
                           "snapkv[window=64", "sink,snapkv[windw=3]"}) {
    CAPTURE(list);
    CHECK_FALSE(says(list));
  }
}

TEST_CASE("errors about flags name the item") {
  const auto refused = [](const Names& methods, const Names& settings = {}) {
    return message_of<Error>([&] { parse_methods(methods, settings); });
  };
  CHECK(contains(refused({"snapkv[window=64,sink"}),
                 "`methods` 'snapkv[window=64,sink': brackets stand once, at the end"));
  CHECK(contains(refused({"snapkv[window=64]x"}), "brackets stand once, at the end"));
  CHECK(contains(refused({"snapkv[window=64]+int8[group=16]"}), "brackets stand once, at the end"));
  CHECK(contains(refused({"snapkv+int8[int8.grup=16]"}), "has no parameter 'grup'"));
  CHECK(contains(refused({"snapkv[64]"}), "`methods` 'snapkv[64]': '64' is not PARAMETER=VALUE"));
  CHECK(contains(refused({"snapkv[windw=3]"}), "method 'snapkv' has no parameter 'windw'. Did you mean 'window'?"));
  CHECK(contains(refused({"snapvk[window=3]"}), "there is no method 'snapvk'. Did you mean 'snapkv'?"));
  CHECK(contains(refused({"all[window=3]"}), "all has no parameters"));
  CHECK(contains(refused({"sink,,snapkv"}), "has an empty item"));
  CHECK(contains(refused({"snapkv"}, {"window=3"}), "METHOD.PARAMETER=VALUE"));
  CHECK(
      contains(refused({"exact"}, {"snapkv.window=3"}), "is for a method that is not replayed; add `methods` snapkv"));
}

namespace {

std::string renamed(const std::string& message) {
  return rename_fields(message, [](std::string_view field) -> std::string {
    if (field == "window") return "--window";
    return field.starts_with("protect_") ? "--protect" : "";
  });
}

}  // namespace

TEST_CASE("fields in backquotes are replaced by their names, other words are not") {
  CHECK(renamed("") == "");
  CHECK(renamed("no field") == "no field");
  CHECK(renamed("`window` is 3; lower `window`") == "--window is 3; lower --window");
  CHECK(renamed("`other` and `kvbench merge`") == "`other` and `kvbench merge`");
  CHECK(renamed("an open ` stays") == "an open ` stays");
  CHECK(renamed("`window") == "`window");
}

TEST_CASE("two fields with the same name are named once") {
  CHECK(renamed("leave `protect_first` and `protect_last` out") == "leave --protect out");
  CHECK(renamed("`protect_first` and `window`") == "--protect and --window");
}

TEST_CASE("keys of a sweep file set fields of requests") {
  CHECK(key_of("kv_heads") == "heads");
  CHECK(key_of("protect_last") == "protect");
  CHECK(key_of("backend") == "device");
  CHECK(key_of("zip") == "zip");
  for (const char* none : {"memory", "threads", "isa", "", "nonsense"}) CHECK(key_of(none) == "");
}

TEST_CASE("a family stands for its methods, and an item with a dash leaves out") {
  const auto names = [](const Names& methods, const Names& settings = {}) {
    return names_of(parse_methods(methods, settings));
  };
  const auto without = [](Names all, const std::string& start) {
    std::erase_if(all, [&](const std::string& name) { return name == start || name.starts_with(start + "["); });
    return all;
  };
  const Names all = names({"all"}), eviction = names({"eviction"});
  CHECK(std::ranges::count(eviction, "h2o") == 1);
  CHECK(std::ranges::count(eviction, "duo") == 0);  // as `all`
  for (const std::string& one : eviction) CHECK(kvbench::methods::family_of(one) == "eviction");
  CHECK(names({"Quantization"}) == names({"quantisation"}));
  CHECK(names({"quantisers"}).front() == "int");
  CHECK(names({"exact,exact[]"}) == Names{"exact"});
  CHECK(names({"all,-knorm"}) == without(all, "knorm"));
  CHECK(names({"all", "-H2O"}) == without(all, "h2o"));  // its variants too
  CHECK(std::ranges::count(names({"all,-h2o[per=query_head]"}), "h2o") == 1);
  CHECK(names({"sink,merging,snapkv[window=8],-merging"}) == Names{"sink", "snapkv[window=8]"});
  CHECK(names({"h2o,h2o[per=query_head],-h2o[heavy=1]"}, {"h2o.heavy=1"}) == Names{"h2o[heavy=1;per=query_head]"});
  const auto refused = [](const Names& methods) { return message_of<Error>([&] { parse_methods(methods, {}); }); };
  for (const char* list : {"-knorm", "-knorm,all", "sink,-knorm", "sink,-merging", "snapkv,-snapkv[window=8]"})
    CHECK(contains(refused({list}), "leaves out nothing"));
  CHECK(contains(refused({"sink,h2o,-eviction"}), "'-eviction' leaves out all methods that stand before it"));
  CHECK(contains(refused({"all,-knrom"}), "Did you mean 'knorm'?"));
  CHECK(contains(refused({"eviction[sinks=4]"}), "eviction has no parameters"));
  const SweepFiles files;
  const auto of_file = [&](const char* list) { return methods_of(files.read(run_with(list))); };
  CHECK(of_file("\"eviction\"") == eviction);
  CHECK(of_file("[\"all\", \"-knorm\"]") == without(all, "knorm"));
  CHECK(of_file("[{ name = \"snapkv\", window = [4, 8] }, \"-snapkv[window=4]\"]") == Names{"snapkv[window=8]"});
  CHECK(contains(message_of<Error>([&] { of_file("[\"sink\", \"-knorm\"]"); }), "'-knorm' leaves out nothing"));
}
