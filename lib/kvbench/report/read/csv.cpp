// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/read/csv.hpp>

#include <algorithm>
#include <cstring>
#include <filesystem>

#include <kvbench/core/error.hpp>
#include <kvbench/core/input_file.hpp>
#include <kvbench/core/utf8.hpp>
#include <kvbench/report/text/text.hpp>

namespace kvbench::report {
namespace {

// More than any table of kvbench has: a field takes 32 bytes in memory for one in the file, and messages show whole
// fields.
constexpr std::size_t max_columns = 4096, max_field = 1 << 20;

/// Reads the text once, one row per call.
class Scanner {
 public:
  Scanner(std::string_view text, const std::string& file) : text_(text), file_(file) {
    if (text_.starts_with("\xEF\xBB\xBF")) text_.remove_prefix(3);
  }

  bool done() const { return at_ == text_.size(); }

  std::vector<std::string> header() {
    std::vector<std::string> columns = row().cells;
    most_fields_ = columns.size();
    return columns;
  }

  CsvRow row() {
    CsvRow row{line_, {}};
    do {
      if (row.cells.size() == most_fields_) {
        throw Error("{}:{}: more fields than the {} {}; is the file edited?", file_, row.line, most_fields_,
                    row.line == 1 ? "that a table of kvbench can have" : "of the header");
      }
      row.cells.push_back(csv_text(field()));
    } while (take(','));
    end_of_line();
    return row;
  }

 private:
  bool take(char c) {
    if (done() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  std::string field() {
    if (take('"')) return quoted();
    const std::size_t end = std::min(text_.find_first_of(",\"\r\n", at_), text_.size());
    check_length(end - at_, line_);
    std::string field(text_.substr(at_, end - at_));
    at_ = end;
    if (!done() && text_[at_] == '"')
      throw Error("{}:{}: a quote inside an unquoted field; quote the field and double the quotes inside it", file_,
                  line_);
    return field;
  }

  void check_length(std::size_t size, std::size_t line) const {
    if (size > max_field)
      throw Error("{}:{}: a field of more than {} bytes begins here; is a quote missing?", file_, line, max_field);
  }

  std::string quoted() {
    const std::size_t begin = line_;
    std::string field;
    for (;;) {
      if (done()) throw Error("{}:{}: the quote that begins here is not closed; is the file incomplete?", file_, begin);
      check_length(field.size(), begin);
      const char c = text_[at_++];
      line_ += c == '\n';
      if (c != '"') {
        field += c;
      } else if (take('"')) {
        field += '"';
      } else {
        break;
      }
    }
    if (!done() && std::strchr(",\r\n", text_[at_]) == nullptr)
      throw Error("{}:{}: text after the closing quote of a field", file_, line_);
    return field;
  }

  void end_of_line() {
    if (done()) return;
    take('\r');
    if (!take('\n') && !done()) throw Error("{}:{}: a carriage return inside a line", file_, line_);
    ++line_;
  }

  std::string_view text_;
  const std::string& file_;
  std::size_t at_ = 0, line_ = 1, most_fields_ = max_columns;
};

void check_text(std::string_view text, const std::string& file) {
  const std::size_t at = invalid_utf8(text);
  if (at == std::string_view::npos) return;
  const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n');
  throw Error(
      "{}:{}: has the byte 0x{:02x}, where tables have UTF-8 text without control characters; kvbench reads the "
      "CSV files that kvbench writes.{}",
      file, line, static_cast<unsigned char>(text[at]), line == 1 ? file_hint(file, Expected::table) : "");
}

void add_header(CsvTable& table, std::vector<std::string> columns) {
  table.columns = std::move(columns);
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    if (!table.index.emplace(table.columns[c], c).second)
      throw Error("{}:1: the column '{}' appears twice", table.file, table.columns[c]);
  }
}

/// Calls `take` with each row after the header; returns the table without rows.
template <class F>
CsvTable scan(std::string_view text, const std::string& file, F take) {
  if (text.empty()) throw Error("{}: the file is empty; was the run that should write it interrupted?", file);
  check_text(text, file);
  CsvTable table{.file = file, .name = printable(std::filesystem::path(file).filename().string())};
  Scanner scanner(text, file);
  add_header(table, scanner.header());
  if (scanner.done()) throw Error("{}: has a header but no rows; there is nothing to report", file);
  while (!scanner.done()) {
    CsvRow row = scanner.row();
    if (row.cells.size() != table.columns.size()) {
      throw Error("{}:{}: {} fields where the header has {}; is the file incomplete or edited?", file, row.line,
                  row.cells.size(), table.columns.size());
    }
    take(table, std::move(row));
  }
  return table;
}

/// Tables with a row per query can be large; tables with more rows than this are better compared from raw results.
constexpr std::uint64_t max_file_bytes = std::uint64_t{4} << 30;

std::string read_text(const std::string& path) {
  const InputDescriptor file(path);
  if (regular_file_size(file, path, "a CSV file") > max_file_bytes) {
    throw Error(
        "{}: has more than 4 GiB, too much for a table in memory; write fewer rows (--rows), or compare the results of "
        "--raw",
        path);
  }
  return read_input_file(path, max_file_bytes, "a CSV file");
}

}  // namespace

std::optional<std::size_t> CsvTable::find(std::string_view column) const {
  const auto known = index.find(std::string(column));
  return known == index.end() ? std::nullopt : std::optional(known->second);
}

const std::string& CsvTable::text(const CsvRow& row, std::string_view column) const {
  static const std::string none;
  const auto position = find(column);
  return position ? row.cells[*position] : none;
}

double CsvTable::number(const CsvRow& row, std::string_view column) const { return cell(row, column).number(); }

std::int64_t CsvTable::count(const CsvRow& row, std::string_view column) const { return cell(row, column).count(); }

CsvTable parse_csv(std::string_view text, const std::string& file) {
  std::vector<CsvRow> rows;
  CsvTable table = scan(text, file, [&](const CsvTable&, CsvRow row) { rows.push_back(std::move(row)); });
  table.rows = std::move(rows);
  return table;
}

CsvTable read_csv(const std::string& path) { return parse_csv(read_text(path), path); }

void scan_csv(const std::string& path, const std::function<void(const CsvTable&, const CsvRow&)>& take) {
  scan(read_text(path), path, take);
}

}  // namespace kvbench::report
