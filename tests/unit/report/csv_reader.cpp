// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <kvbench/core/error.hpp>
#include <kvbench/core/utf8.hpp>
#include <kvbench/methods/registry.hpp>
#include <kvbench/report/document/writers.hpp>
#include <kvbench/report/read/csv.hpp>
#include <kvbench/report/read/labels.hpp>
#include <kvbench/report/text/text.hpp>

#include <support/messages.hpp>
#include <support/temp_folder.hpp>
#include <unit/report/replay_lines.hpp>

using namespace kvbench;
using namespace kvbench::report;
using namespace kvbench::report_test;
using namespace kvbench::testing;

namespace {

std::vector<std::string> cells(const std::string& text, std::size_t row) {
  return parse_csv(text, "f.csv").rows.at(row).cells;
}

/// The message of the error for a text.
std::string message(std::string_view text) {
  return testing::message_of<Error>([&] { parse_csv(text, "f.csv"); });
}

}  // namespace

TEST_CASE("quoted fields hold commas, quotes and line ends") {
  CHECK(cells("a,b\n\"x,y\",\"say \"\"hi\"\"\"\n", 0) == std::vector<std::string>{"x,y", "say \"hi\""});
  CHECK(cells("a,b\n\"two\nlines\",2\n", 0) == std::vector<std::string>{"two\nlines", "2"});
  CHECK(cells("a,b\n\"\",\n", 0) == std::vector<std::string>{"", ""});
}

TEST_CASE("line ends, a missing last line end, and a byte order mark") {
  CHECK(cells("a,b\r\n1,2\r\n", 0) == std::vector<std::string>{"1", "2"});
  CHECK(cells("a,b\n1,2", 0) == std::vector<std::string>{"1", "2"});
  CHECK(parse_csv("\uFEFFa\n1\n", "f.csv").has("a"));
}

TEST_CASE("rows have their line numbers, also after a field of several lines") {
  const CsvTable table = parse_csv("a,b\n1,\"x\ny\nz\"\n3,4\n", "f.csv");
  REQUIRE(table.rows.size() == 2);
  CHECK(table.rows[0].line == 2);
  CHECK(table.rows[1].line == 5);
}

TEST_CASE("columns are found by name") {
  const CsvTable table = parse_csv("a,b\n1,x\n", "dir/f.csv");
  CHECK(table.text(table.rows[0], "b") == "x");
  CHECK(table.text(table.rows[0], "c").empty());
  CHECK(!table.has("c"));
  CHECK(table.name == "f.csv");
}

TEST_CASE("numbers: shortest text, infinities, empty cells, and text that is not a number") {
  const CsvTable table = parse_csv("v\n0.25\ninf\n-inf\n\"\"\n1.5x\n1e-7\n", "f.csv");
  const auto number = [&](std::size_t row) { return table.number(table.rows[row], "v"); };
  CHECK(number(0) == 0.25);
  CHECK(number(1) == INFINITY);
  CHECK(number(2) == -INFINITY);
  CHECK(std::isnan(number(3)));
  CHECK_THROWS_WITH_AS(number(4), "f.csv:6: column 'v' holds '1.5x', which is not a number", Error);
  CHECK(number(5) == 1e-7);
  CHECK(std::isnan(table.number(table.rows[0], "w")));
}

TEST_CASE("malformed CSV is refused with file and line") {
  CHECK(message("").starts_with("f.csv: the file is empty"));
  CHECK(message("a,b\n").starts_with("f.csv: has a header but no rows"));
  CHECK(message("a,b\n1,2\n3\n").starts_with("f.csv:3: 1 fields where the header has 2"));
  CHECK(message("a,b\n1,2,3\n").starts_with("f.csv:2: more fields than the 2 of the header"));
  CHECK(message("a,b\n1,\"x\n2,3\n").starts_with("f.csv:2: the quote that begins here is not closed"));
  CHECK(message("a,b\n1,x\"y\n").starts_with("f.csv:2: a quote inside an unquoted field"));
  CHECK(message("a,b\n1,\"x\"y\n").starts_with("f.csv:2: text after the closing quote"));
  CHECK(message("a,b\n1,x\ry\n").starts_with("f.csv:2: a carriage return inside a line"));
  CHECK(message("a,a\n1,2\n").starts_with("f.csv:1: the column 'a' appears twice"));
  CHECK(message(std::string_view("a,b\n1,\0\n", 8)).starts_with("f.csv:2: has the byte 0x00, where tables have UTF-8"));
  CHECK(message("a,b\n1,\xC3\n").starts_with("f.csv:2: has the byte 0xc3, where tables have UTF-8 text"));
  CHECK(message("a,b\n1,\xC3\xA9\n").empty());
}

TEST_CASE("a blank line is a row of one empty field") {
  CHECK(message("a,b\n1,2\n\n").starts_with("f.csv:3: 1 fields"));
}

TEST_CASE("a file that does not exist") {
  CHECK_THROWS_WITH_AS(read_csv("nowhere.csv"), "nowhere.csv: there is no such file; check the name.", Error);
  CHECK_THROWS_AS(read_csv("."), Error);
}

// Their header says that they are tables of results, of which `kvbench report` makes a page: that is the command that
// refuses them here.
TEST_CASE("a damaged or huge table is not said to be one that kvbench report reads") {
  const TempFolder folder;
  const std::string damaged = folder.file({"trace,method,\0budget\nt,h2o,1\n", 29}, "damaged.csv");
  const std::string huge = folder.file("trace,method,budget\n", "huge.csv");
  CHECK_THROWS_WITH_AS(read_csv(damaged),
                       (damaged + ":1: has the byte 0x00, where tables have UTF-8 text without control characters; "
                                  "kvbench reads the CSV files that kvbench writes.")
                           .c_str(),
                       Error);
  std::filesystem::resize_file(huge, (std::uintmax_t{1} << 32) + 1);  // sparse
  CHECK_THROWS_WITH_AS(
      read_csv(huge),
      (huge + ": has more than 4 GiB, too much for a table in memory; write fewer rows (--rows), or compare "
              "the results of --raw")
          .c_str(),
      Error);
}

TEST_CASE("columns and fields beyond those of any table are refused with their line") {
  CHECK(message(std::string(1'000'000, ','))
            .starts_with("f.csv:1: more fields than the 4096 that a table of kvbench can have"));
  const std::string large(2'000'000, 'x');
  CHECK(message("a,b\n1," + large + "\n").starts_with("f.csv:2: a field of more than 1048576 bytes begins here"));
  CHECK(
      message("a,b\n1,2\n1,\"" + large + "\n").starts_with("f.csv:3: a field of more than 1048576 bytes begins here"));
}

TEST_CASE("counts are whole numbers that an integer can hold") {
  const CsvTable table = parse_csv("v\n12\n\"\"\n1e300\n-1\n0.5\nnan\n", "f.csv");
  CHECK(table.count(table.rows[0], "v") == 12);
  CHECK(table.count(table.rows[1], "v") == 0);
  for (const std::size_t bad : {2, 3, 4, 5}) CHECK_THROWS_AS(table.count(table.rows[bad], "v"), Error);
  CHECK(table.count(table.rows[0], "w") == 0);
}

TEST_CASE("texts that a spreadsheet would compute are protected, and read back as they were") {
  const std::vector<std::string> plain = {"-0.5", "-inf", "-1e-7", "12", "", "a=b", "'quoted'", "it's", "-1e999"};
  for (const std::string& text : plain) CHECK(csv_line({&text, 1}) == text + "\n");
  const std::vector<std::string> formulas = {"=1+1", "+1",     "-1+1", "-",          "@SUM(A1)",
                                             "\t=1", "\r",     "\nx",  "'=1+1",      "''-0.5",
                                             "'@",   "=\"a\"", "=a,b", "-2+3\r\n=4", "=\xC3\xA9"};
  for (const std::string& text : formulas) {
    CAPTURE(text);
    const std::string line = csv_line({&text, 1});
    CHECK((line.starts_with("'") || line.starts_with("\"'")));
    CHECK(cells("a\n" + line, 0) == std::vector<std::string>{text});
  }
  for (const std::string& text : plain) CHECK(cells("a,b\n" + text + ",\n", 0)[0] == text);
}

TEST_CASE("a CSV holds text whatever its fields hold") {
  const std::vector<std::string> fields = {"a\x01z",           "\xFF\xC3",   "\xE0\x80\x80", "\xED\xA0\x80",
                                           "\xF4\x90\x80\x80", "two\nlines", "\xC3\xA9"};
  const CsvTable table = parse_csv("a,b,c,d,e,f,g\n" + csv_line(fields), "f.csv");
  const std::vector<std::string> read = {
      "a\\x01z", "\\xff\\xc3", "\\xe0\\x80\\x80", "\\xed\\xa0\\x80", "\\xf4\\x90\\x80\\x80", "two\nlines", "\xC3\xA9"};
  CHECK(table.rows[0].cells == read);
  CHECK(printable("a\tb\x7F\n") == "a\\x09b\\x7f\\x0a");
  CHECK(printable("\xC2\x9B") == "\\xc2\\x9b");
  CHECK(escape_xml("<\x01>") == "&lt;\\x01&gt;");
}

// Which methods a report shows, how it tells the reader's own apart, and methods by budgets for papers.

TEST_CASE("a report of some methods has their rows alone, with all or with the named parameters") {
  const std::vector<CsvTable> all = {
      replay_table(
          {{}, {.method = "subgen"}, {.method = "subgen", .params = "t=7"}, {.method = "h2o", .budget = "50%"}}),
      replay_table({{.method = "h2o", .protocol = "decode"}}, "d.csv"),
      parse_csv(check_header + std::string(25, ',') + "\n", "c.csv")};
  const auto kept = [&](const std::vector<std::string>& names) {
    std::vector<CsvTable> tables = all;
    keep_methods(tables, names);
    Texts out;
    for (const CsvTable& table : tables) {
      for (const CsvRow& row : table.rows)
        out.push_back(table.file + " " + table.text(row, "method") + " " + table.text(row, "params"));
    }
    return out;
  };
  CHECK(kept({"subgen"}) == Texts{"r.csv subgen ", "r.csv subgen t=7", "c.csv  "});
  CHECK(kept({"Subgen[t=7]", "sink"}) == Texts{"r.csv sink ", "r.csv subgen t=7", "c.csv  "});
  CHECK(kept({"subgen[]"}) == Texts{"r.csv subgen ", "c.csv  "});
  CHECK(kept({"H2O"}) == Texts{"r.csv h2o ", "d.csv h2o ", "c.csv  "});
  CHECK_THROWS_WITH_AS(
      kept({"sink", "subgem"}),
      "--method subgem: no row is of this method. Did you mean 'subgen'? The rows are of sink, subgen, "
      "subgen[t=7], h2o.",
      Error);
  CHECK_THROWS_WITH_AS(kept({"subgen[t=5]"}), doctest::Contains("--method subgen[t=5]: no row"), Error);
  CHECK_THROWS_AS(kept({"[t=5]"}), Error);
}

TEST_CASE("labels replace the names of methods in all columns that have them, and keep families") {
  const std::vector<CsvTable> all = {replay_table({{.method = "./mine.py:far", .best = "subgen[t=7]", .tied = "0"},
                                                   {.method = "subgen", .params = "t=7", .best = "subgen[t=7]"},
                                                   {.method = "subgen", .best = "./mine.py:far"},
                                                   {.method = "random"}})};
  const auto shown = [&](const std::vector<std::string>& labels) {
    std::vector<CsvTable> tables = all;
    Labels(labels).apply(tables);
    Texts out;
    for (const CsvRow& row : tables[0].rows)
      out.push_back(tables[0].text(row, "method") + "|" + tables[0].text(row, "params") + "|" +
                    tables[0].text(row, "best"));
    return out;
  };
  CHECK(shown({}) ==
        Texts{"./mine.py:far||subgen[t=7]", "subgen|t=7|subgen[t=7]", "subgen||./mine.py:far", "random||"});
  CHECK(shown({"far=Ours"}) == Texts{"Ours||subgen[t=7]", "subgen|t=7|subgen[t=7]", "subgen||Ours", "random||"});
  CHECK(shown({"subgen=SubGen"}) ==
        Texts{"./mine.py:far||SubGen[t=7]", "SubGen|t=7|SubGen[t=7]", "SubGen||./mine.py:far", "random||"});
  CHECK(shown({"subgen=A", "subgen[t=7]=B = 7"}) ==
        Texts{"./mine.py:far||B = 7", "B = 7||B = 7", "A||./mine.py:far", "random||"});
  CHECK(methods::family_of("Ours") == "own");
  CHECK(methods::family_of("SubGen") == "sampling");
  shown({"far=./mine.py:far"});  // stands for itself
  CHECK(methods::family_of("./mine.py:far") == "own");
  struct Row {
    std::vector<std::string> labels;
    const char* message;
  };
  const Row refused[] = {
      {{"far"}, "write METHOD=TEXT"},
      {{"=Ours"}, "write METHOD=TEXT"},
      {{"far="}, "write METHOD=TEXT"},
      {{"random=Chance"}, "random is a reference"},
      {{"far=h2o"}, "name of another method"},
      {{"far=subgen"}, "name of another method"},
      {{"far=A", "subgen=A"}, "two methods"},
      {{"subgem=A"}, "no row is of 'subgem'. Did you mean 'subgen'?"},
      {{"subgen[t=5]=A"}, "no row is of 'subgen[t=5]'"},
  };
  for (const Row& row : refused) CHECK_THROWS_WITH_AS(shown(row.labels), doctest::Contains(row.message), Error);
}

TEST_CASE("own methods have styles by their names, the same in all figures, whatever the order and the errors") {
  const auto lines = [](const char* protocol, bool swapped) {
    return std::vector<Line>{{.method = "h2o", .protocol = protocol},
                             {.method = "./mine.py:B", .error = swapped ? "0.1,," : "0.9,,", .protocol = protocol},
                             {.method = "./mine.py:A", .error = "0.5,,", .protocol = protocol},
                             {.method = "unheard-of", .params = "a=1", .error = "0.4,,", .protocol = protocol}};
  };
  const std::string page =
      html(report_of({replay_table(lines("decode", true)), replay_table(lines("prefill", false))}));
  const auto drawn = [&](const std::string& group) {
    std::size_t count = 0;
    for (std::size_t at = page.find("<g " + group); at != page.npos; at = page.find("<g " + group, at + 1)) ++count;
    return count;
  };
  CHECK(drawn("class=\"own\" data-m=\"./mine.py:A\">") == 2);  // the error by method of both sections
  CHECK(drawn("class=\"own o1\" data-m=\"./mine.py:B\">") == 2);
  CHECK(drawn("class=\"own o2\" data-m=\"unheard-of a=1\">") == 2);
  CHECK(drawn("class=\"k0\" data-m=\"h2o\">") == 2);
  CHECK(contains(page, ">unheard-of a=1</text>\n</g>"));  // and a legend of its own
}

TEST_CASE("methods by budgets for LaTeX: the best bold, what cannot be told from it underlined, untested rows marked") {
  const Document document =
      report_of({replay_table({{.budget = "12.5%", .error = "0.5,,", .best = "h2o", .tied = "1"},
                               {.error = "0.4,,", .best = "sink", .tied = "1"},
                               {.method = "h2o", .budget = "12.5%", .error = "0.45,,", .best = "h2o", .tied = "1"},
                               {.method = "h2o", .error = "0.6,,", .best = "sink", .tied = "0"},
                               {.method = "cam", .error = "0.7,,", .best = "sink"},
                               {.method = "cam", .budget = "50%", .error = "0.1,,"},
                               {.method = "h2o", .budget = "50%", .error = "0.2,,"},
                               {.method = "kivi4", .reason = "calibrated on the evaluated context", .error = "0.2,,"},
                               {.method = "random", .error = "0.3,,"}})});
  const std::string text = latex(document);
  CHECK(contains(text,
                 "\\caption{Mean relative error by method and budget. Bold: the best of a budget; underlined: not "
                 "distinguishable from it; without marks: not tested; reference: not ranked (?: not tested "
                 "against the best; --: no result). tiny; t.h5, "));
  CHECK(contains(text, "2 of 6 layers; prefill.}"));
  CHECK(contains(text,
                 "method & 12.5\\% & 25\\% & 50\\% \\\\\n\\midrule\n"
                 "sink & \\underline{0.500} & \\textbf{0.400} & -- \\\\\n"
                 "h2o & \\textbf{0.450} & 0.600 & 0.200 \\\\\n"
                 "cam & -- & 0.700? & 0.100 \\\\\n"
                 "kivi4 (reference) & -- & 0.200 & -- \\\\\n"
                 "random (reference) & -- & 0.300 & -- \\\\\n\\bottomrule"));
  CHECK(!contains(html(document), "by method and budget"));
  CHECK(!contains(markdown(document), "by method and budget"));
}

// Means of 0.5 and 0.45, geometric means of 0.3 and 0.4, by which rows are ranked and tested: what is bold is what has
// the smaller number.
TEST_CASE("a table for LaTeX has the means by which its rows are ranked") {
  const auto table = [](const char* of_sink) {
    std::string csv = replay_header;
    csv.insert(csv.find('\n'), ",rel_err_geomean");
    const auto add = [&](const Line& line, const std::string& geomean) {
      csv += text(line);
      csv.insert(csv.size() - 1, "," + geomean);
    };
    add({.error = "0.5,,", .best = "sink", .tied = "1"}, of_sink);
    add({.method = "h2o", .error = "0.45,,", .best = "sink", .tied = "0"}, "0.4");
    return latex(report_of({parse_csv(csv, "r.csv")}));
  };
  CHECK(contains(table("0.3"), "\\caption{Geometric mean of the error by method and budget. Bold:"));
  CHECK(contains(table("0.3"), "sink & \\textbf{0.300} \\\\\nh2o & 0.400 \\\\\n"));
  CHECK(contains(table(""), "\\caption{Mean relative error by method and budget."));  // a row without one
  CHECK(contains(table("0.3"), "times the best\\\\{}(geometric)"));                   // in two lines
}
