// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <unit/config/files.hpp>

using namespace kvbench;
using namespace kvbench::compare;
using namespace kvbench::config;
using namespace kvbench::testing;

TEST_CASE("a published number has a claim, a metric and rows, and a reason why it is not tested") {
  const SweepFiles files;
  const std::string start = "[[run]]\nmethods = \"sink\"\n[[published]]\nclaim = \"c\"\n";
  const Sweep sweep = files.read(start +
                                 "paper = \"0.1\"\nmetric = \"recall_mean\"\nwhy = \"w\"\nuntestable = \"scores\"\n"
                                 "rows = [{ run = \"1\", layer = 3 }, { method = \"sink\" }]\n");
  REQUIRE(sweep.published.size() == 1);
  const Published& published = sweep.published[0];
  CHECK(published.claim.text == "c");
  CHECK(published.claim.untestable == "scores");
  CHECK(published.paper == "0.1");
  CHECK(published.metric == "recall_mean");
  CHECK(published.why == "w");
  REQUIRE(published.rows.size() == 2);
  CHECK(published.rows[0][1] == std::pair<std::string, std::string>{"layer", "3"});
  CHECK(contains(files.refusal(start), "s.toml:3:1: a block [[published]] needs 'claim' and 'metric'"));
  CHECK(contains(files.refusal(start + "metric = \"recall_mean\"\n"), "needs either 'relations'"));
  CHECK(contains(files.refusal(start + "metric = \"recall_mean\"\nuntestable = \"x\"\n"),
                 "without relations needs 'rows'"));
  CHECK(contains(files.refusal(start + "metrics = \"x\"\n"), "Did you mean 'metric'?"));
  CHECK(contains(files.refusal(start + "rows = 3\n"), "'rows' takes a list of tables, not the number 3"));
}

TEST_CASE("a row to show is bound as the runs are, and one that no result can match is refused") {
  const SweepFiles files;
  const std::string start =
      "[[run]]\nname = \"r\"\nbudgets = \"25%\"\nmeasure = \"clusterability\"\nmethods = [\"sink\", "
      "{ name = \"chelsea\", ratio = 0.3, decay = 0.125 }, \"chelsea\"]\nprompts = [\"a\", \"b\"]\nlayers = [2, 8]\n"
      "protocol = [\"decode\", \"stream\"]\n[[run]]\nmethods = \"sink\"\n[[published]]\nclaim = \"c\"\n"
      "metric = \"m\"\nuntestable = \"u\"\nrows = [";
  const auto row = [&](const std::string& text) { return files.read(start + text + "]\n").published.at(0).rows.at(0); };
  using Row = std::vector<std::pair<std::string, std::string>>;
  // In any order and notation, with a default written out.
  for (const char* params : {"ratio=0.3;decay=0.125", "decay=0.125,ratio=0.3", "decay=.125,ratio=0.30",
                             "ratio=3e-1;decay=0.125;chunk=256"}) {
    CAPTURE(params);
    CHECK(row(std::string("{ method = \"Chelsea\", params = \"") + params + "\", budget = \"0.25\" }") ==
          Row{{"method", "chelsea"}, {"params", "ratio=0.3;decay=0.125"}, {"budget", "25%"}});
  }
  CHECK(row("{ method = \"chelsea\", params = \"chunk=256\" }") == Row{{"method", "chelsea"}, {"params", ""}});
  CHECK(row("{ run = \"r\", measure = \"clusterability\", array = \"keys\", x = 16.0 }").at(3).second == "16");
  const auto refused = [&](const std::string& text) { return files.refusal(start + text + "]\n"); };
  const std::string at = "s.toml:15:";
  CHECK(contains(refused("{ method = \"h2o\" }"),
                 at + "20: no run has the method 'h2o' here; there is 'chelsea', 'sink'"));
  CHECK(contains(refused("{ method = \"chelsea\", params = \"ratio=0.4\" }"),
                 "no run has the params 'ratio=0.4' here; there is"));
  CHECK(contains(refused("{ method = \"chelsea\", params = \"ratio\" }"), "is not PARAMETER=VALUE"));
  CHECK(contains(refused("{ params = \"ratio=0.3\" }"), "beside the 'method'"));
  CHECK(
      contains(refused("{ method = \"sink\", budget = \"50%\" }"), "no run has the budget '50%' here; there is '25%'"));
  CHECK(contains(refused("{ run = \"q\", method = \"sink\" }"), "there is no run 'q'"));
  CHECK(
      contains(refused("{ measure = \"similarity-by-distance\" }"), "no run has the measure 'similarity-by-distance'"));
  CHECK(contains(refused("{ method = \"sink\", measure = \"clusterability\" }"), "leave one of them out"));
  CHECK(contains(refused("{ methd = \"sink\" }"), "a row has no key 'methd'. Did you mean 'method'?"));
  const std::pair<const char*, const char*> planted[] = {
      {"protocol = 'auto'", "15:22: 'protocol' takes 'prefill', 'decode' or 'stream', not the text 'auto'"},
      {"run = 'r', protocol = 'prefill'", "no run has the protocol 'prefill' here; there is 'decode', 'stream'"},
      {"device = 'gpu'", "'device' takes 'cpu', 'ref' or 'cuda', not"},
      {"layer = 'two'", "'layer' takes a whole number or 'all', not the text 'two'"},
      {"layer = -1", "'layer' takes"},
      {"run = 'r', layer = 3", "no run has the layer '3' here; there is '2', '8'"},
      {"run = 'r', prompt = 'c'", "no run has the prompt 'c' here; there is 'a', 'b'"},
      {"array = 'queries'", "'array' takes 'keys'"},
  };
  for (const auto& [text, message] : planted) CHECK(contains(refused(fmt::format("{{ {} }}", text)), message));
  for (const char* text : {"protocol = 'prefill', layer = 30, prompt = 'x'", "run = 'r', layer = 'all', prompt = 'b'",
                           "device = 'cuda (H100)', seed = ''"})
    CHECK_NOTHROW(row(fmt::format("{{ {} }}", text)));
}

TEST_CASE("relations between configurations of the runs") {
  const SweepFiles files;
  const std::string start =
      "[[run]]\nname = \"r\"\nmethods = [\"sink\", \"clusterkv\", { name = \"clusterkv\", distance = \"l2\" }, "
      "{ name = \"quest\", page = [8, 4] }]\n"
      "[[published]]\nid = \"x.y\"\nclaim = \"c\"\nmetric = \"recall_mean\"\n";
  const auto relations = [&](const std::string& text) { return start + "relations = [" + text + "]\n"; };
  const Sweep sweep = files.read(relations(
      "{ run = \"r\", a = \"clusterkv[distance=l2]\", is = \"lower\", b = \"clusterkv[]@25%\", by "
      "= \"layer\" },{ a = \"sink\", is = \"at least\", b = 0.5, within = 0.1, tokens = 96, below = \"why\" }"));
  const PaperClaim& claim = sweep.published.at(0).claim;
  CHECK(claim.id == "x.y");
  CHECK(claim.metric.name == "recall");
  REQUIRE(claim.relations.size() == 2);
  CHECK(describe(claim.relations[0]) == "clusterkv[distance=l2] lower than clusterkv[]@25%, by layer");
  CHECK(claim.relations[0].run == "r");
  CHECK(describe(claim.relations[1]) == "sink at least 0.5 within 10 %");
  CHECK(claim.relations[1].number == 0.5);
  CHECK(claim.relations[1].tokens == 96);
  CHECK(claim.relations[1].below == "why");
  const auto refusal = [&](const std::string& text) { return files.refusal(relations(text)); };
  CHECK(contains(refusal("{ a = \"snk\", is = \"lower\", b = \"sink\" }"), "s.toml:8:20: a: there is no method 'snk'"));
  CHECK(contains(refusal("{ a = \"sink\", is = \"lower\", b = \"quest\" }"), "matches 2 configurations"));
  CHECK(contains(refusal("{ a = \"sink@50%\", is = \"lower\", b = 1 }"), "there is no budget '50%'"));
  CHECK(contains(refusal("{ run = \"q\", a = \"sink\", is = \"lower\", b = 1 }"), "there is no run 'q'"));
  CHECK(contains(refusal("{ a = \"sink\", is = \"below\", b = 1 }"),
                 "takes one of \"lower\", \"higher\", \"at least\", \"equal\""));
  CHECK(contains(refusal("{ a = \"sink\", is = \"equal\", b = 1 }"), "'within'"));
  CHECK(contains(refusal("{ a = \"sink\", is = \"lower\" }"), "needs 'a', 'is' and 'b'"));
  CHECK(contains(refusal("{ a = \"sink\", is = \"lower\", b = 1, tokens = 96 }"), "stand together"));
  CHECK(contains(refusal("{ a = \"sink\", is = \"lower\", b = 1, tokens = 0.5, below = \"x\" }"), "number of tokens"));
  CHECK(contains(refusal("{ a = \"sink\", than = 1 }"), "a relation has no key 'than'"));
  CHECK(contains(
      files.refusal(start + "untestable = \"x\"\n" + "relations = [{ a = \"sink\", is = \"lower\", b = 1 }]\n"),
      "either"));
}

TEST_CASE("a list of metrics states a claim by each") {
  const SweepFiles files;
  const auto text = [](const std::string& metric, const std::string& by) {
    return "[[run]]\nmethods = [\"sink\", \"snapkv\"]\n[[published]]\nid = \"a\"\nclaim = \"c\"\nmetric = " + metric +
           "\nrelations = [{ a = \"snapkv\", is = \"lower\", b = \"sink\"" + by + " }]\n";
  };
  const Sweep sweep = files.read(text("[\"rel_err_mean\", \"kl_predicted\"]", ""));
  REQUIRE(sweep.published.size() == 2);
  CHECK(sweep.published[0].claim.id == "a.rel_err_mean");
  CHECK(sweep.published[0].claim.metric.name == "rel_err");
  CHECK(sweep.published[1].claim.id == "a.kl_predicted");
  CHECK(sweep.published[1].claim.text == "c, by kl_predicted");
  CHECK(sweep.published[1].claim.metric.name == "kl_predicted");
  CHECK(sweep.published[1].metric == "kl_predicted");
  CHECK(sweep.published[1].claim.relations.size() == 1);
  CHECK(files.read(text("\"kl_predicted\"", "")).published.at(0).claim.id == "a");
  CHECK(files.read(text("\"kl_predicted\"", ", by = \"prompt\"")).published.size() == 1);
  CHECK(contains(files.refusal(text("\"kl_predicted\"", ", by = \"layer\"")), "of all layers of a text together"));
  CHECK(contains(files.refusal(text("\"kl_predicted_mean\"", "")), "not 'kl_predicted_mean'"));
  CHECK(contains(files.refusal(text("\"rel_err\"", "")), "not 'rel_err'"));
  CHECK(contains(files.refusal(text("[]", "")), "s.toml:6:10: 'metric' is an empty list"));
  CHECK(contains(files.refusal(text("[\"rel_err_mean\", 3]", "")), "'metric' takes a text, not the number 3"));
  CHECK(contains(files.refusal(text("[\"rel_err_mean\", \"rel_err_mean\"]", "")), "also has the id 'a.rel_err_mean'"));
}

TEST_CASE("claims have unique ids") {
  const SweepFiles files;
  const std::string claim =
      "[[published]]\nid = \"a\"\nclaim = \"c\"\nmetric = \"m\"\nuntestable = \"u\"\nrows = [{ run = \"1\" }]\n";
  CHECK(contains(files.refusal("[[run]]\nmethods = \"sink\"\n" + claim + claim), "also has the id 'a'"));
}
