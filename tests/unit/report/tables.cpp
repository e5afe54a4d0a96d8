// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/columns/tables.hpp>
#include <kvbench/report/document/writers.hpp>
#include <kvbench/report/read/csv.hpp>
#include <kvbench/report/replay/reason_groups.hpp>
#include <kvbench/report/replay/table.hpp>
#include <kvbench/report/text/sentences.hpp>

#include <algorithm>
#include <sstream>
#include <vector>

#include <doctest/doctest.h>

using namespace kvbench;
using namespace kvbench::replay;
using namespace kvbench::report;

namespace {

using Texts = std::vector<std::string>;

Record record(std::string method, double error) {
  Record r{};
  r.trace = "a.h5";
  r.prompt = std::string("0");
  r.method = std::move(method);
  r.budget = Budget::parse("64");
  r.kept_tokens = 64;
  r.context_tokens = 256;
  r.bytes = {.kv = 100, .meta = 28, .full = 512};
  r.metrics.fill({error, error, error, error, error, error, error, error});
  r.rel_err_fro = r.metrics[Metric::rel_err];
  r.compress_s = 0.5;
  return r;
}

Record broken(std::string method, Status status, std::string reason) {
  Record r = record(std::move(method), 0);
  r.status = status;
  r.reason = std::move(reason);
  return r;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

}  // namespace

TEST_CASE("the header of a CSV is the columns, and lines end in LF") {
  const std::vector<Record> records = {record("a", 0.5), record("b", 0.25)};
  const std::string csv = csv_of(record_columns(), records);
  CHECK(csv.find('\r') == std::string::npos);
  CHECK(csv.back() == '\n');
  const CsvTable table = parse_csv(csv, "r.csv");
  REQUIRE(table.rows.size() == 2);
  REQUIRE(table.columns.size() == record_columns().size());
  for (std::size_t c = 0; c < record_columns().size(); ++c) {
    CHECK(table.columns[c] == record_columns()[c].key);
    CHECK(table.rows[1].cells[c] == record_columns()[c].value.print(records[1]));
  }
  for (const auto& [key, text] : {std::pair("rel_err_mean", "0.5"),
                                  {"compression", "4"},
                                  {"kept_fraction", "0.25"},
                                  {"layer", "all"},
                                  {"seed", ""}})
    CHECK(table.text(table.rows[0], key) == text);
  CHECK(lines_of(csv_of(record_columns(), {})).size() == 1);
}

TEST_CASE("without times exactly the time columns are missing") {
  const Record r = record("a", 0.5);
  const CsvTable with = parse_csv(csv_of(record_columns(), {&r, 1}), "r.csv"),
                 without = parse_csv(csv_of(record_columns(), {&r, 1}, false), "r.csv");
  for (const Column<Record>& column : record_columns()) {
    CHECK(without.has(column.key) == !column.time);
    if (!column.time) CHECK(without.text(without.rows[0], column.key) == with.text(with.rows[0], column.key));
  }
  CHECK(without.columns.size() == with.columns.size() - 3);
}

TEST_CASE("a row that is not ok has a reason and no numbers") {
  const Record r = broken("m", Status::skipped, "no queries");
  const CsvTable table = parse_csv(csv_of(record_columns(), {&r, 1}), "r.csv");
  CHECK(table.text(table.rows[0], "status") == "skipped");
  CHECK(table.text(table.rows[0], "reason") == "no queries");
  for (const Column<Record>& column : record_columns()) {
    if (column.type == "number") CHECK_MESSAGE(table.text(table.rows[0], column.key).empty(), column.key);
  }
}

TEST_CASE("Markdown escapes pipes and keeps its columns") {
  Record r = record("m", 0.5);
  r.params = "a=1|b=||";
  const std::vector<Record> records = {r, broken("n", Status::failed, "x | y")};
  const auto lines = lines_of(markdown(all_rows(records)));
  REQUIRE(lines.size() == 4);
  CHECK(lines[2].find("a=1\\|b=\\|\\|") != std::string::npos);
  CHECK(lines[3].find("failed: x \\| y") != std::string::npos);
  const auto bars = [](const std::string& line) {
    std::size_t count = 0;
    for (std::size_t i = 0; i < line.size(); ++i) count += line[i] == '|' && (i == 0 || line[i - 1] != '\\');
    return count;
  };
  for (const std::string& line : lines) CHECK(bars(line) == bars(lines[0]));
}

TEST_CASE("the terminal table is aligned, best error first, and shows no layers") {
  Record layer = record("in-one-layer", 0.1);
  layer.layer = 3;
  const std::vector<Record> records = {record("worse", 0.75),
                                       broken("cannot", Status::skipped, "a long reason of its own"),
                                       record("much-better-name", 0.0125), layer};
  const auto lines = lines_of(terminal_text(rows_by_error(records)));
  REQUIRE(lines.size() == 5);
  CHECK(lines[1].starts_with("much-better-name"));
  CHECK(lines[2].starts_with("worse"));
  CHECK(lines[3].empty());
  CHECK(lines[4] == "skipped at 64 tokens: cannot (a long reason of its own)");
  CHECK(lines[0].size() == lines[1].size());
  CHECK(lines[1].size() == lines[2].size());
  for (const std::string& line : lines) CHECK(!line.ends_with(' '));
  for (const char* header : {"rel_err", "bytes/full", "read/full", "recall"}) {
    const std::size_t end = lines[0].find(header) + std::string(header).size();
    CAPTURE(header);
    for (std::size_t i = 1; i < 3; ++i) {
      CHECK(lines[i][end - 1] != ' ');  // right-aligned under its header
      CHECK((end == lines[i].size() || lines[i][end] == ' '));
    }
  }
}

TEST_CASE("reasons that many rows repeat are one line, with ranges of their numbers") {
  const auto cost = [](const char* method, const char* budget, const char* text) {
    Record r = broken(method, Status::infeasible, text);
    r.budget = Budget::parse(budget);
    return r;
  };
  std::vector<Record> records = {cost("quest", "25%mem", "costs at least 106.3 %, with 48 tokens"),
                                 cost("exact", "25%mem", "costs at least 100 %, with 1 token"),
                                 cost("int8", "25%mem", "costs at least 56.25 %, at 8 bits"),
                                 cost("int8", "50%mem", "costs at least 56.25 %, at 8 bits")};
  CHECK(reason_sentences(records) ==
        Texts{"infeasible at 25 % of the memory: quest, exact (costs at least 100 to 106.3 %, with 1 to 48 tokens)",
              "infeasible at 25 %, 50 % of the memory: int8 (costs at least 56.25 %, at 8 bits)"});
  CHECK(terminal_text(rows_by_error(records)).starts_with("infeasible at 25 % of the memory: quest, exact"));
  // A method that failed elsewhere is no part of the group: quest at 50 % is not infeasible on both traces.
  records.resize(2);
  records.push_back(records[0]);
  records.back().trace = "b.h5", records.back().sha256 = "b";
  CHECK(
      reason_sentences(records) ==
      Texts{
          "infeasible at 25 % of the memory on a.h5: quest, exact (costs at least 100 to 106.3 %, with 1 to 48 tokens)",
          "infeasible at 25 % of the memory on b.h5: quest (costs at least 106.3 %, with 48 tokens)"});
  CHECK(reason_sentences({}).empty());
}

TEST_CASE("sentences without their numbers, and wrapped lines") {
  CHECK(without_numbers("at 4.5 bits (512 of 12 layers); int8") == "at # bit (# of # layer); int8");
  CHECK(with_ranges(std::vector<std::string>{"at 4 bits", "at 16 bits", "at 8 bits"}) == "at 4 to 16 bits");
  CHECK(wrapped("aa bb cc dd", 5, 2) == "aa bb\n  cc\n  dd\n");
  CHECK(wrapped("aaaaaaaa b", 5, 1) == "aaaaaaaa\n b\n");
}

TEST_CASE("with several prompts the terminal shows the row over all of them") {
  Record all = record("m", 0.5), one = record("m", 0.25);
  all.prompt = "all";
  const std::vector<Record> records = {all, one};
  const auto lines = lines_of(terminal_text(rows_by_error(records)));
  REQUIRE(lines.size() == 2);
  CHECK(lines[1].find("0.5") != std::string::npos);
}

TEST_CASE("tables of several traces show the trace of each row") {
  std::vector<Record> records = {record("worse", 0.5), record("better", 0.25), record("worse", 0.75),
                                 broken("cannot", Status::skipped, "a reason")};
  CHECK(terminal_text(rows_by_error(records)).find("trace") == std::string::npos);
  for (std::size_t i = 2; i < 4; ++i) records[i].trace = "other.h5", records[i].sha256 = "b";
  const auto lines = lines_of(terminal_text(rows_by_error(records)));
  REQUIRE(lines.size() == 6);
  CHECK(lines[0].starts_with("trace     method"));
  CHECK(lines[1].starts_with("a.h5      better"));
  CHECK(lines[2].starts_with("a.h5      worse"));
  CHECK(lines[3].starts_with("other.h5  worse"));
  CHECK(lines[5] == "skipped at 64 tokens on other.h5: cannot (a reason)");
  const auto page = lines_of(markdown(all_rows(records)));
  CHECK(page[0].starts_with("| trace | method | layer | budget |"));
  CHECK(page[1].starts_with("| --- | --- | --- | ---: |"));
  CHECK(page[4].starts_with("| other.h5 | worse | all | 64 |"));
}

TEST_CASE("rows that are tied with the best are marked, and the mark is explained") {
  std::vector<Record> records = {record("best", 0.125), record("near", 0.25), record("far", 0.5),
                                 broken("cannot", Status::skipped, "x")};
  for (std::size_t i = 0; i < 3; ++i) {
    records[i].best = "best";
    records[i].tied = i < 2;
  }
  const auto lines = lines_of(terminal_text(rows_by_error(records)));
  REQUIRE(lines.size() == 7);
  CHECK(lines[1].find("0.125 ") != std::string::npos);
  CHECK(lines[2].find("0.25~") != std::string::npos);
  CHECK(lines[3].find("0.5 ") != std::string::npos);
  CHECK(lines[2].size() == lines[1].size());
  CHECK(lines[4].starts_with("~ not distinguishable"));
  CHECK(markdown(all_rows(records)).find("| 0.25~ |") != std::string::npos);
  CHECK(markdown(all_rows(records)).find("\n\n~ not") != std::string::npos);
  for (Record& r : records) r.layers = r.compressed_layers = {3}, r.model_layers = 30;
  CHECK(markdown(all_rows(records)).ends_with("\nLayer 3 of 30.\n"));
  const CsvTable table = parse_csv(csv_of(record_columns(), records, false), "r.csv");
  for (const std::size_t row : {1, 2, 3})
    CHECK(table.text(table.rows[row], "tied") == std::array{"", "1", "0", ""}[row]);
  records[1].tied = false;
  CHECK(terminal_text(rows_by_error(records)).find('~') == std::string::npos);  // the best row itself has no mark
}

TEST_CASE("a table about rows has a line for each of them; counts, budgets and enumerators are cells by their texts") {
  struct Row {
    std::string name;
    int count;
    Budget budget;
    Status status;
  };
  const std::vector<Row> rows = {{"a", 3, Budget::parse("25%"), Status::ok},
                                 {"b", 0, Budget::parse("64"), Status::failed}};
  const std::vector<RowColumn<Row>> columns = {
      {{"name"}, &Row::name}, {{"count", true}, &Row::count}, {{"budget"}, &Row::budget}, {{"status"}, &Row::status}};
  const std::vector<const Row*> pointers = {&rows[0], &rows[1]};
  const Block of_values = filled<Row>({}, columns, rows), of_pointers = filled<Row>({}, columns, pointers);
  for (const Block& table : {of_values, of_pointers})
    CHECK(terminal_text({&table, 1}) ==
          "name  count  budget  status\n"
          "a         3  25%     ok\n"
          "b         0  64      failed\n");
}

TEST_CASE("captions say what marks mean, of those that a table has: it may stand alone in a paper") {
  struct Row {
    const char *cell, *note;
  };
  const Row rows[] = {
      {"large: 0.389", "large: the arithmetic mean is above 0.15 nats"},
      {"outside: 16455", "outside: the error of a layer is too large"},
      {"outside", "outside: the error of a layer is too large"},
      {"tied, 1.2", "tied: not distinguishable"},
      {"not tested, 2", "not tested: no test"},
      {"0.5?", "?: not tested"},
      {"reference", "reference: not ranked"},
      {"measure", "measure: not ranked"},
      {"not estimable", "not estimable: a few huge errors"},
      {"too few queries", "too few queries: fewer than two blocks"},
      {"geometric 0.1", "geometric: mean of the logarithms"},
      {"–", "–: no result"},
      {"0.1 [0.05, 0.2]", "in brackets: the 95 % interval"},
  };
  const auto table = [](const char* title, const char* cell, bool prose = false) {
    return DocTable{.title = "T", .columns = {{"method"}, {title, !prose, prose}}, .rows = {{"a?", cell}}};
  };
  for (const Row& row : rows) {
    CAPTURE(row.cell);
    const DocTable one = table("value", row.cell);
    REQUIRE(notes_of(one).size() == 1);
    CHECK(notes_of(one)[0].starts_with(row.note));
    const std::string end = notes_of(one)[0].substr(notes_of(one)[0].find(": ") + 2, 6);
    const Document document{.title = "t", .blocks = {one}};
    CHECK(latex(document).find(end) < latex(document).find("\\toprule"));  // in the caption
    CHECK(markdown(document).find(end) != std::string::npos);
    CHECK(html(document).find(end) != std::string::npos);
    CHECK(notes_of(table("value", row.cell, true)).empty());  // prose
  }
  CHECK(notes_of(table("95 % interval", "0.1 to 0.2")).size() == 1);
  CHECK(notes_of(table("adjusted 95% interval", "0.1..0.2")).size() == 1);
  CHECK(notes_of(table("a / b [adjusted 95 % interval]", "0.1 [0.05, 0.2]")).size() == 2);
  CHECK(notes_of(table("value", "0.5")).empty());
  CHECK(latex({.title = "t", .blocks = {table("value", "0.5")}}).find("\\caption{T}") != std::string::npos);
}
