// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/replay/table.hpp>

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <kvbench/replay/records/figures.hpp>
#include <kvbench/report/document/writers.hpp>

using namespace kvbench;
using namespace kvbench::replay;
using namespace kvbench::report;

namespace {

using Lines = std::vector<std::string>;

Record record(std::string method, double error, std::string_view budget = "25%mem") {
  Record r{};
  r.trace = std::string("a.h5"), r.sha256 = std::string("a"), r.prompt = std::string("0");
  r.method = std::move(method), r.budget = Budget::parse(budget);
  r.context_tokens = 256;
  r.bytes = {.kv = 100, .meta = 28, .full = 512};
  r.metrics.fill({error, error, error, error, error, error, error, error});
  return r;
}

Record without_result(std::string method, Status status) {
  Record r = record(std::move(method), 0);
  r.status = status, r.reason = "it is too large";
  return r;
}

Lines lines_of(const std::string& text) {
  Lines lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

Lines brief(const std::vector<Record>& records) {
  return lines_of(terminal_text(brief_summary(records, "--summary=full")));
}

void check_size(const Lines& lines) {
  CHECK(lines.size() <= 12);
  for (const std::string& line : lines) CHECK_MESSAGE(line.size() <= 100, line);
}

}  // namespace

TEST_CASE("a replay at one budget ends with the answer, the five lowest errors, and what is not shown") {
  std::vector<Record> records;
  for (const char* name : {"snapkv", "h2o", "chelsea", "sink", "int", "kmeans", "uniform"})
    records.push_back(record(name, 0.125 * static_cast<double>(records.size() + 1)));
  for (Record& r : records) {
    r.best = "snapkv", r.tied = r.method == "snapkv" || r.method == "h2o", r.tested_over = "5 texts";
    r.ratio_best = r.metrics[Metric::rel_err].mean / 0.125, r.ratio_best_interval = {0.5, 20};
  }
  records.push_back(without_result("quest", Status::infeasible));
  records.push_back(without_result("cam", Status::failed));
  const Lines lines = brief(records);
  check_size(lines);
  CHECK(lines.at(0) + lines.at(1) ==
        "At 25 % of the memory, snapkv has the lowest error of the 7 methods run (0.125); h2o cannot be told"
        "from it (~). Tested over 5 texts.");
  const auto header = std::ranges::find_if(lines, [](const std::string& l) { return l.starts_with("method"); });
  REQUIRE(lines.end() - header > 6);
  CHECK(header[1].starts_with("snapkv   eviction"));
  CHECK(header[5].starts_with("int      quantisation"));
  CHECK(header[2].find("0.25~") != std::string::npos);
  CHECK(header[6] == "The lowest error of each other family: sampling uniform (0.875).");
  CHECK(lines.back() == "Not shown: 2 rows with results, 1 infeasible, 1 failed; see --summary=full.");
}

// Eight rows with results: five methods and an oracle are replayed beside two that read their own context. The table
// shows the five, so that three are not shown.
TEST_CASE("what is not shown is counted from the rows of the table, and what is not ranked has its name") {
  std::vector<Record> records;
  for (const char* name : {"snapkv", "h2o", "chelsea", "sink", "int", "triattention", "kvquant-nofisher"})
    records.push_back(record(name, 0.125 * static_cast<double>(records.size() + 1)));
  records[5].reason = records[6].reason = "calibrated on the evaluated context";
  records.push_back(record("oracle-error", 0.01));
  const Lines lines = brief(records);
  check_size(lines);
  CHECK(fmt::format("{}", fmt::join(lines, " "))
            .find("Not ranked without --calibrate: triattention, kvquant-nofisher.") != std::string::npos);
  CHECK(lines.back() == "Not shown: 3 rows with results; see --summary=full.");
  records.resize(6);
  records[5] = record("oracle-error", 0.01);
  CHECK(brief(records).back() == "Not shown: 1 row with results; see --summary=full.");
}

// Sentences with long names leave the table fewer than its five rows.
TEST_CASE("rows that do not fit the screen are not shown, and are counted so") {
  std::vector<Record> records;
  for (int i = 0; i < 10; ++i) {
    records.push_back(record(fmt::format("py:{:a<80}{}", "", i), 1 + i));
    records.back().best = records.front().method, records.back().tied = i < 6, records.back().tested_over = "5 texts";
  }
  const Lines lines = brief(records);
  CHECK(lines.size() == 12);
  const auto shown =
      std::ranges::count_if(lines, [](const std::string& l) { return l.find("  own ") != std::string::npos; });
  CHECK(lines.back() == fmt::format("Not shown: {} rows with results; see --summary=full.", 10 - shown));
  CHECK(shown < 5);
}

TEST_CASE("references are no rows of a ranking, whatever their error") {
  const Lines lines = brief({record("oracle-error", 0.01), record("exact", 0), record("snapkv", 0.5)});
  CHECK(lines.at(0).starts_with("method"));
  CHECK(lines.at(0).find("times") == std::string::npos);
  CHECK(lines.at(1).starts_with("snapkv"));
  CHECK(lines.at(2).starts_with("exact"));
  CHECK(lines.at(3).starts_with("oracle-error"));
  CHECK(lines.size() == 4);
}

TEST_CASE("one method at several budgets says which is which") {
  const Lines lines = brief({record("h2o", 0.5, "12.5%mem"), record("h2o", 0.25, "50%mem")});
  CHECK(lines.at(1).starts_with("h2o     50%mem    eviction"));
  CHECK(lines.at(2).starts_with("h2o     12.5%mem  eviction"));
}

TEST_CASE("a ratio that is not that of the values beside it says so") {
  // Means 0.02 and 0.06 over texts, of which one dominates; geometric means 0.01 and 0.02.
  std::vector<Record> records = {record("h2o", 0.25), record("sink", 0.5)};
  for (Record& r : records) {
    r.ranked_by = figure_named("kl_predicted"), r.best = "h2o", r.tied = false;
    r.kl.mean = r.method == "h2o" ? 0.02 : 0.06;
  }
  const auto header = [&] { return brief(records).at(brief(records).size() - 3); };
  CHECK(header().find("times the best") != std::string::npos);  // of one text: 3
  records[0].geomean = 0.01, records[1].geomean = 0.02;
  records[1].ratio_best = 2;
  CHECK(header().find("ratio (geometric)") != std::string::npos);
}

TEST_CASE("several budgets, traces and runs have one line each") {
  std::vector<Record> records;
  for (const char* budget : {"12.5%mem", "25%mem", "64"}) {
    records.push_back(record("h2o", 0.5, budget));
    records.push_back(record("sink", 0.75, budget));
  }
  const Lines lines = brief(records);
  check_size(lines);
  REQUIRE(lines.size() == 5);
  CHECK(lines[0].starts_with("budget    lowest error"));
  CHECK(lines[1].starts_with("12.5%mem  h2o (0.5)"));
  CHECK(lines[3].ends_with("sink: x 1.5"));
  for (std::size_t i = 0; i < 40; ++i) {
    records.push_back(record("h2o", 0.5, fmt::format("{}", 100 + i)));
    records.push_back(record("sink", 0.75, fmt::format("{}", 100 + i)));
    records.back().run = records[records.size() - 2].run = "a run of some length";
  }
  check_size(brief(records));
  CHECK(brief(records)[0].starts_with("run                   budget"));
}

TEST_CASE("several budgets say what is not known, as one budget does") {
  std::vector<Record> records;
  for (const char* budget : {"25%mem", "50%mem"}) {
    for (const char* method : {"h2o", "sink", "int"}) {
      records.push_back(record(method, method[0] == 'h' ? 0.5 : 0.75, budget));
      records.back().best = "h2o", records.back().blocks = 2;
    }
    records[records.size() - 3].tied = true;
  }
  records[3].ranked_by = records[4].ranked_by = records[5].ranked_by = figure_named("kl_predicted");
  records[3].kl.mean = 0.01, records[4].kl.mean = 0.02;
  records[5].kl.mean = 0.03, records[5].kl.outside = "layer 0, error 0.64 of the stream";
  const auto text = [](const std::vector<Record>& of) { return fmt::format("{}", fmt::join(brief(of), "\n")); };
  const std::string both = text(records), one = text({records.begin(), records.begin() + 3});
  CHECK(both.find("25%mem  cannot tell: h2o (0.5)") != std::string::npos);
  CHECK(both.find("sink, int") != std::string::npos);
  CHECK(both.find("Cannot be predicted at each of these budgets: int.") != std::string::npos);
  for (const std::string& said : {both, one}) {
    CHECK(said.find("cannot tell") != std::string::npos);
    CHECK(said.find("Nothing was tested. A test takes") != std::string::npos);
  }
  records[1].tied = false, records[1].tested_over = "5 texts";
  CHECK(text(records).find("25%mem  h2o (0.5)") != std::string::npos);
}

TEST_CASE("several budgets name your own methods, wherever they stand, and mark values that do not say how large") {
  std::vector<Record> records;
  for (const char* budget : {"12.5%mem", "25%mem", "50%mem"}) {
    double error = 0.2;
    for (const char* method : {"h2o", "sink", "int", "./mine.py:far", "py:near"}) {
      records.push_back(record(method, 0.5, budget));
      records.back().ranked_by = figure_named("kl_predicted");
      records.back().kl.mean = error *= budget[0] == '1' ? 2 : 0.5;
    }
  }
  records[8].kl.outside = "layer 0, error 0.64 of the stream";
  records[14] = without_result("py:near", Status::failed);
  records[14].budget = Budget::parse("50%mem");
  const Lines lines = brief(records);
  REQUIRE(lines.size() >= 4);
  CHECK(lines[0].ends_with("next       your methods"));
  CHECK(lines[1] == "12.5%mem  h2o (large: 0.4)        sink: x 2  ./mine.py:far: x 8, py:near: x 16");
  CHECK(lines[2].ends_with("./mine.py:far: outside"));
  CHECK(lines[2].find("py:near (0.00625)") != std::string::npos);
  CHECK(lines[3].ends_with("./mine.py:far (0.0125)  int: x 2   py:near: failed"));
}

TEST_CASE("several budgets name your own methods in a sentence where a column would make lines too long") {
  std::vector<Record> records;
  for (const char* budget : {"12.5%mem", "25%mem"}) {
    double error = 0.1;
    for (const char* method : {"h2o", "sink", "./research/mine.py:farthest_first", "./research/mine.py:nearest_first"})
      records.push_back(record(method, error *= 2, budget));
  }
  const Lines lines = brief(records);
  check_size(lines);
  CHECK(lines[0].find("your methods") == std::string::npos);
  const std::string said = fmt::format("{}", fmt::join(lines, " "));
  CHECK(said.find("Your methods: ./research/mine.py:farthest_first at 12.5%mem x 4, at 25%mem x 4; "
                  "./research/mine.py:nearest_first at 12.5%mem x 8, at 25%mem x 8.") != std::string::npos);
}

TEST_CASE("names that cannot be told from the best are whole, as many as fit") {
  std::vector<Record> records = {record("h2o", 0.5), record("sink", 0.6)};
  for (const char* name : {"expected-attention", "adakv(snapkv)", "expected-attention+kivi4"})
    records.push_back(record(name, 0.7));
  for (Record& r : records) r.best = "h2o", r.tied = true, r.tested_over = "5 texts";
  const std::vector<Record> one = records;
  for (Record r : one) {
    r.budget = Budget::parse("50%mem");
    records.push_back(std::move(r));
  }
  CHECK(brief(records).at(1).find("  sink, expected-attention and 2 more") != std::string::npos);
}

TEST_CASE("long names are whole, and many of them do not fill the screen") {
  std::vector<Record> records;
  for (int i = 0; i < 60; ++i) {
    records.push_back(record("py:", 1 + i));
    for (int k = 0; k < 90; ++k) records.back().method += "\u00e4";
    records.back().params = fmt::format("window={}", i);
  }
  const Lines lines = brief(records);
  CHECK(lines.size() <= 12);
  CHECK(std::ranges::any_of(lines,
                            [&](const std::string& l) { return l.starts_with(records[0].method + "[window=0] "); }));
}

TEST_CASE("budgets at which nothing was tested are named beside those that were tested") {
  std::vector<Record> records;
  for (const char* budget : {"25%mem", "50%mem"}) {
    for (const char* method : {"h2o", "sink"}) {
      records.push_back(record(method, method[0] == 'h' ? 1 : 2));
      records.back().budget = Budget::parse(budget), records.back().best = "h2o";
      if (budget[0] == '2') records.back().tied = method[0] == 'h', records.back().tested_over = "5 texts";
    }
  }
  const auto says = [&](const std::string& text) {
    const Lines lines = brief(records);
    return std::ranges::count_if(lines, [&](const std::string& l) { return l.find(text) != std::string::npos; });
  };
  CHECK(says("Nothing was tested at 50%mem. ") == 1);
  for (Record& r : records) r.tied = std::nullopt, r.tested_over.clear();
  CHECK(says("Nothing was tested. ") == 1);
}

TEST_CASE("a family whose row does not fit the screen is named below it") {
  std::vector<Record> records;
  for (const char* method : {"h2o", "snapkv", "sink", "tova", "cam"})
    records.push_back(record(method, 1 + static_cast<double>(records.size())));
  records.push_back(record("uniform", 9));
  CHECK(std::ranges::count(brief(records), "The lowest error of each other family: sampling uniform (9).") == 1);
  // A sentence about long names leaves no line for the row of cam.
  const std::string params = "window=" + std::string(60, '1');
  for (std::size_t i = 0; i < records.size(); ++i) {
    records[i].params = i < 3 ? params : "", records[i].best = "h2o[" + params + "]";
    records[i].tied = i < 3, records[i].tested_over = "5 texts";
  }
  const Lines lines = brief(records);
  CHECK(lines.size() <= 12);
  CHECK(std::ranges::none_of(
      lines, [](const std::string& l) { return l.starts_with("cam ") && l.find("merging") != l.npos; }));
  std::string text;
  for (const std::string& line : lines) text += line + " ";
  CHECK(text.find("of each other family: merging cam (5)") != std::string::npos);
}

TEST_CASE("one method is a row; without results there are reasons, and without rows nothing") {
  CHECK(brief({record("h2o", 0.5)}).at(1).starts_with("h2o     eviction"));
  const Lines none = brief({without_result("quest", Status::infeasible)});
  CHECK(none.at(0) == "infeasible at 25 % of the memory: quest (it is too large)");
  CHECK(none.at(1) == "Not shown: 1 infeasible; see --summary=full.");
  CHECK(brief({}).empty());
}

TEST_CASE("terminals, Markdown and HTML write the same blocks") {
  const std::vector<Block> blocks = {
      Paragraph{"A sentence."},
      DocTable{.columns = {{"name"}, {"n", true}, {"m", true}}, .rows = {{"a|b", "1", "22"}, {"c", "d e"}}},
      AnswerBlock{"What holds", {"one", "two"}}};
  CHECK(terminal_text(blocks) == "A sentence.\nname  n   m\na|b   1  22\nc     d e\n\nWhat holds\n  one\n  two\n");
  CHECK(markdown(blocks) ==
        "A sentence.\n\n| name | n | m |\n| --- | ---: | ---: |\n| a\\|b | 1 | 22 |\n| c | d e |  |\n\n**What "
        "holds**\n\n- one\n- two\n");
  const std::string page = html({.title = "t", .blocks = blocks});
  CHECK(page.find("<th scope=\"row\">c</th><td class=\"n\" colspan=\"2\">d e</td></tr>") != std::string::npos);
}

TEST_CASE("sentences of a terminal are wrapped") {
  std::string words;
  for (int i = 0; i < 60; ++i) words += "word ";
  const std::vector<Block> blocks = {AnswerBlock{"", {words + "end"}}};
  const Lines lines = lines_of(terminal_text(blocks));
  REQUIRE(lines.size() == 4);
  check_size(lines);
  CHECK(lines[1].starts_with("    word"));
}

TEST_CASE("blocks beneath a folded heading end before the next heading of its level") {
  std::vector<Block> blocks = {Heading{2, "A"}};
  append_folded(blocks, "none", {});
  append_folded(blocks, "more", {Paragraph{"p"}});
  append_folded(blocks, "most", {Paragraph{"q"}});
  blocks.emplace_back(Heading{2, "B"});
  blocks.emplace_back(Heading{2, "C", true});
  append_folded(blocks, "inner", {Paragraph{"r"}});
  blocks.emplace_back(Heading{2, "D"});
  const std::string page = html({.title = "t", .blocks = blocks});
  const std::string body = page.substr(page.find("<main>"));
  CHECK(
      body.starts_with("<main>\n<h2 id=\"s1\">A</h2>\n<details class=\"part\">\n<summary><h3 "
                       "id=\"s2\">more</h3></summary>\n<p>p</p>\n</details>\n<details class=\"part\">"));
  CHECK(body.find("<p>q</p>\n</details>\n<h2 id=\"s4\">B</h2>\n<details class") != std::string::npos);
  CHECK(body.find("<p>r</p>\n</details>\n</details>\n<h2 id=\"s7\">D</h2>\n</main>") != std::string::npos);
}
