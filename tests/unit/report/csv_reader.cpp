// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/read/csv.hpp>

#include <cmath>

#include <doctest/doctest.h>

#include <kvbench/core/error.hpp>
#include <kvbench/core/utf8.hpp>
#include <kvbench/report/text/text.hpp>
#include <unit/trace/sample.hpp>

using namespace kvbench;
using namespace kvbench::report;

namespace {

std::vector<std::string> cells(const std::string& text, std::size_t row) {
  return parse_csv(text, "f.csv").rows.at(row).cells;
}

/// The message of the error for a text.
std::string message(std::string_view text) {
  return trace::test::message_of<Error>([&] { parse_csv(text, "f.csv"); });
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
  CHECK(message(std::string_view("a,b\n1,\0\n", 8)).starts_with("f.csv:2: has bytes that are not UTF-8 text"));
  CHECK(message("a,b\n1,\xC3\n").starts_with("f.csv:2: has bytes that are not UTF-8 text"));
  CHECK(message("a,b\n1,\xC3\xA9\n").empty());
}

TEST_CASE("a blank line is a row of one empty field") {
  CHECK(message("a,b\n1,2\n\n").starts_with("f.csv:3: 1 fields"));
}

TEST_CASE("a file that does not exist") {
  CHECK_THROWS_WITH_AS(read_csv("nowhere.csv"), "nowhere.csv: there is no such file; check the name.", Error);
  CHECK_THROWS_AS(read_csv("."), Error);
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
