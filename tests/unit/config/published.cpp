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
}

TEST_CASE("a row to show is bound as the runs are") {
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
}
