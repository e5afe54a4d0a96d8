// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/read/table_results.hpp>

#include <algorithm>
#include <cmath>
#include <fstream>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <kvbench/core/error.hpp>
#include <kvbench/report/columns/tables.hpp>
#include <support/messages.hpp>
#include <support/temp_folder.hpp>

using namespace kvbench;
using namespace kvbench::compare;
using namespace kvbench::report;
using namespace kvbench::testing;
using doctest::Approx;

namespace {

const std::string damage_header =
    "model,sha256,text,task,document,document_sha256,documents_sha256,question,context_tokens,inject,inject_layer,"
    "layer,device,method,params,budget,method_layers,model_layers,weights,kv_dtype,protect,decoded,document_seed,"
    "compressed_layers,status,reason,total_bytes,full_bytes,bytes_read,kl_mean,nll_diff,match\n";

struct DamageLine {
  const char* method = "sink";
  std::string document = "all";
  double kl = 1, match = NAN;
  const char *task = "text", *inject = "all", *inject_layer = "", *layer = "all", *status = "ok";
  std::string digest = "";  ///< of the document; "": its name
  const char *layers = "0-29", *weights = "f32", *protect = "0 0", *compressed = "30", *bytes = "20";
};

std::string damage_line(const DamageLine& l) {
  const bool ok = std::string_view(l.status) == "ok";
  const std::string document =
      fmt::format("{},{},{},all", l.task, l.document, l.digest.empty() ? l.document : l.digest);
  const std::string method = fmt::format("{},{},{},cpu,{},,25%", l.inject, l.inject_layer, l.layer, l.method);
  const std::string settings = fmt::format("{},30,{},f16,{},method,0,{}", l.layers, l.weights, l.protect, l.compressed);
  return fmt::format("m.gguf,abc,book.txt,{},outside,4096,{},{},{},{},{},100,20,{},{},{}\n", document, method, settings,
                     l.status, ok ? "" : "it cannot", l.bytes, number_text(l.kl), number_text(-l.kl),
                     number_text(l.match));
}

/// A table of kveval in a file.
class DamageFile {
 public:
  explicit DamageFile(const std::vector<DamageLine>& lines, std::string text = damage_header) : path(folder / "e.csv") {
    for (const DamageLine& l : lines) text += damage_line(l);
    std::ofstream(path) << text;
  }
  std::vector<Comparison> compared(const char* metric = "kl") const {
    const auto damage = std::ranges::find(eval::damage_figures, metric, &eval::DamageFigure::compared_as);
    const DocumentResults results(path, static_cast<eval::Damage>(damage - eval::damage_figures.begin()));
    return compare::compare({.files = {&results},
                             .a = parse_configuration("x", "--a"),
                             .b = parse_configuration("y", "--b"),
                             .metric = damage->compared()});
  }
  std::string refusal(eval::Damage metric = eval::damage("kl_mean")) const {
    return message_of<Error>([&] { DocumentResults(path, metric); });
  }

  TempFolder folder;
  std::string path;
};

/// Documents text-0, text-1, ... with these values of the methods x and y.
std::vector<DamageLine> documents(const std::vector<double>& x, const std::vector<double>& y, DamageLine line = {}) {
  std::vector<DamageLine> lines;
  for (std::size_t d = 0; d < x.size(); ++d) {
    line.document = fmt::format("text-{}", d);
    line.method = "x", line.kl = x[d], line.match = x[d] / 100, lines.push_back(line);
    line.method = "y", line.kl = y[d], line.match = y[d] / 100, lines.push_back(line);
  }
  return lines;
}

}  // namespace

TEST_CASE("documents are the units of comparisons of damage, by hand") {
  // Differences -1, -2, -1, -2, -2, -4: of 2^6 choices of signs, all or none keep the sum.
  std::vector<DamageLine> lines = documents({1, 2, 3, 4, 5, 6}, {2, 4, 4, 6, 7, 10});
  lines.push_back({.method = "x"});                                                   // over all documents
  lines.push_back({.method = "x", .document = "text-0", .kl = 99, .layer = "3"});     // of a layer
  lines.push_back({.method = "x", .document = "text-0", .kl = 0, .inject = "none"});  // no damage
  const DamageFile file(lines);
  const auto rows = file.compared();
  REQUIRE(rows.size() == 1);
  const Comparison& r = rows[0];
  CHECK(r.test.mean_a == 3.5);
  CHECK(r.test.mean_b == 5.5);
  CHECK(r.test.difference == -2);
  CHECK(r.test.p_value == 2.0 / 64);
  CHECK(r.test.blocks == 6);
  CHECK(r.pairs == 6);
  CHECK(r.ratio() == Approx(3.5 / 5.5));
  CHECK(r.outcome == Outcome::a_better);
  CHECK(r.reason.empty());
  CHECK(r.model == "m.gguf");
  CHECK(r.eval.task == "text");
  CHECK(place_text(r, false) == "task text");
  CHECK(place_text(r, true) ==
        "m.gguf, book.txt, 4096 tokens, question outside, layers 0-29 of 30, weights f32, cache f16, protected 0 0, "
        "decoded method, task text");
  CHECK(file.compared("nll")[0].outcome == Outcome::b_better);
  CHECK(std::isnan(file.compared("nll")[0].ratio()));  // differences of nll may be negative
  CHECK(file.compared("match")[0].outcome == Outcome::b_better);
  CHECK(contains(
      csv_of(compare_columns(), rows),
      "m.gguf,all,all,all,,book.txt,text,outside,4096,all,,0-29,30,f32,f16,0 0,method,,kl,x,25%,y,25%,a better,,"));
}

TEST_CASE("equal differences of shares count as equal") {
  // Five documents +1/3, one -1/3: the sum is reached by the 1 + 6 + 6 + 1 choices with at most one sign of its own.
  const double third = 1.0 / 3;
  const DamageFile file(documents({third, third, third, third, third, 2 * third}, {0, 0, 0, 0, 0, 1}));
  CHECK(file.compared("match")[0].test.p_value == 14.0 / 64);
}

TEST_CASE("one comparison per task and injection") {
  std::vector<DamageLine> lines = documents({1, 2}, {2, 4});
  for (const DamageLine& other : {DamageLine{.task = "passkey"},
                                  {.inject = "one", .inject_layer = "0"},
                                  {.inject = "one", .inject_layer = "7"}}) {
    const auto more = documents({1, 2}, {2, 4}, other);
    lines.insert(lines.end(), more.begin(), more.end());
  }
  const auto rows = DamageFile(lines).compared();
  std::vector<std::string> places;
  for (const Comparison& r : rows) places.push_back(place_text(r, false));
  CHECK(places ==
        std::vector<std::string>{"task text", "task passkey", "task text, inject one 0", "task text, inject one 7"});
  CHECK(rows[0].outcome == Outcome::untested);
  CHECK(rows[0].reason == "2 documents: no p-value below 0.5 is possible; at least 6 documents are needed");
}

TEST_CASE("documents without a value are left out") {
  std::vector<DamageLine> lines = documents({1, 2, 3}, {2, 4, 6});
  lines[0].status = "skipped";
  lines[3].match = NAN;
  const DamageFile file(lines);
  CHECK(file.compared()[0].test.blocks == 2);
  CHECK(file.compared()[0].reason.starts_with("without 1 of 3 documents: x skipped: it cannot"));
  CHECK(file.compared("match")[0].test.blocks == 1);
  CHECK(file.compared("match")[0].left_out == 1);
  for (DamageLine& line : lines) line.match = NAN;
  CHECK(contains(DamageFile(lines).compared("match")[0].reason, "match applies to no document of both"));
}

TEST_CASE("tables that have no documents to compare are refused") {
  const DamageFile whole(std::vector{DamageLine{}});
  CHECK(whole.refusal() == whole.path + ": has no rows per document; run kveval with --per-document.");
  const DamageFile none(std::vector{DamageLine{.document = "text-0", .inject = "none"}});
  CHECK(contains(none.refusal(), "all rows per document are of --inject none"));
  const DamageFile twice(std::vector(2, DamageLine{.document = "text-0"}));
  const DamageFile nameless(std::vector{DamageLine{.document = "", .digest = ""}});
  CHECK(contains(nameless.refusal(), ":2: column 'document_sha256' is empty"));
  CHECK(twice.refusal() == twice.path + ":3: the row of sink at 25% of document 'text-0' appears twice");
  CHECK(whole.refusal(eval::damage("key_nll")) == whole.path + ": lacks the column 'key_nll', which kveval writes");
  CHECK(is_eval_table(whole.path));
  CHECK(!is_eval_table(whole.folder / "nowhere.csv"));
  CHECK(!is_eval_table(DamageFile({}, "method,query\nkl_mean,1\n").path));
}

TEST_CASE("documents are paired by the digest of their tokens, not by name") {
  std::vector<DamageLine> lines = documents({1, 2, 3, 4, 5, 6}, {2, 4, 6, 8, 10, 12});
  for (DamageLine& line : lines) {
    line.digest = "of " + line.document;
    if (std::string_view(line.method) == "y") line.document = "other name";
  }
  CHECK(DamageFile(lines).compared()[0].pairs == 6);
  for (DamageLine& line : lines) {
    line.document = "text-0";
    if (std::string_view(line.method) == "y") line.digest += " of another text";
  }
  const auto rows = DamageFile(lines).compared();
  REQUIRE(rows.size() == 1);
  CHECK(rows[0].outcome == Outcome::skipped);
  CHECK(contains(rows[0].reason, "y has no rows here"));
}

TEST_CASE("evaluations that differ in a setting are not compared, and the message says in which") {
  struct Case {
    void (*change)(DamageLine&);
    const char* message;
  };
  for (const Case& each :
       {Case{[](DamageLine& l) { l.layers = "0-2"; }, "the evaluations differ in the layers ('0-29' and '0-2')"},
        Case{[](DamageLine& l) { l.weights = "file"; }, "the weights ('f32' and 'file')"},
        Case{[](DamageLine& l) { l.protect = "4 4"; }, "protected tokens ('0 0' and '4 4')"}}) {
    std::vector<DamageLine> lines = documents({1, 2}, {2, 4});
    for (DamageLine& line : lines) {
      if (std::string_view(line.method) == "y") each.change(line);
    }
    const DamageFile file(lines);
    CHECK(contains(message_of<Error>([&] { file.compared(); }), each.message));
  }
}

TEST_CASE("a method that compressed fewer layers than another is not compared with it") {
  std::vector<DamageLine> lines = documents({1, 2}, {2, 4});
  for (DamageLine& line : lines) {
    if (std::string_view(line.method) == "x") line.compressed = "29";
  }
  const auto rows = DamageFile(lines).compared();
  CHECK(rows[0].outcome == Outcome::skipped);
  CHECK(rows[0].reason == "x compressed 29 layers and y 30, and what differs in layers is not compared");
}

TEST_CASE("a method that rounds layers with a sliding window, too, is compared with one that leaves them") {
  std::vector<DamageLine> lines = documents({1, 2}, {2, 4});
  for (DamageLine& line : lines) {
    line.layers = "15-17";
    line.compressed = std::string_view(line.method) == "x" ? "18" : "3";
  }
  CHECK(DamageFile(lines).compared()[0].test.blocks == 2);
}

TEST_CASE("a row with status ok without a number that it needs is an error") {
  std::vector<DamageLine> lines = documents({1, NAN}, {2, 4});
  const DamageFile file(lines);
  CHECK(file.refusal() == file.path + ":4: column 'kl_mean' holds '', and a row with status ok needs a number there");
  lines[2].kl = 1, lines[1].bytes = "";
  CHECK(contains(DamageFile(lines).refusal(), ":3: column 'total_bytes'"));
  lines[1].status = "skipped";
  CHECK(DamageFile(lines).compared()[0].test.blocks == 1);
}
