// SPDX-License-Identifier: Apache-2.0
#include <kvbench/golden/table.hpp>

#include <cmath>
#include <utility>

#include <fmt/ranges.h>

#include <kvbench/report/read/rows.hpp>

namespace kvbench::golden {
namespace {

using report::Column;
using report::CsvCell;
using report::CsvRow;
using report::CsvTable;
using report::needed;
using report::parse_value;
using report::Value;
using report::value_of;

std::string item_text(const std::string& item) { return item; }
std::string item_text(Index item) { return std::to_string(item); }
/// Figures are compared with a tolerance that is larger than what seven digits leave out.
std::string item_text(double item) { return std::isnan(item) ? "nan" : fmt::format("{:.7g}", item); }

/// A list with blanks between its items; figures that do not exist are nan.
template <class T>
Value<Row> list_of(std::vector<T> Row::*member) {
  const auto print = [member](const Row& row) {
    std::vector<std::string> items;
    for (const T& item : row.*member) items.push_back(item_text(item));
    return fmt::format("{}", fmt::join(items, " "));
  };
  const auto parse = [member](Row& row, const CsvCell& cell) {
    for (std::size_t begin = 0, end; begin < cell.text.size(); begin = end + 1) {
      end = std::min(cell.text.find(' ', begin), cell.text.size());
      const std::string item = cell.text.substr(begin, end - begin);
      if (item.empty()) cell.refuse("a list with single blanks between its items");
      T& value = (row.*member).emplace_back();
      if constexpr (std::is_same_v<T, double>) value = NAN;
      if (std::is_same_v<T, double> && item == item_text(NAN)) continue;
      parse_value({cell.file, cell.line, cell.column, item}, value);
    }
  };
  return needed(Value<Row>{.print = print, .parse = parse});
}

Value<Row> ids_value() {
  const auto parse = [](Row& row, const CsvCell& cell) {
    std::optional<Ids> ids = parse_ids(cell.text);
    if (!ids)
      cell.refuse("distances between ids such as 0+3 4 2, which are 0 1 2 3 7 9, with a slash between query heads");
    row.ids = std::move(*ids);
  };
  return needed(Value<Row>{.print = [](const Row& row) { return golden::text_of(row.ids); }, .parse = parse});
}

/// With fewer digits than what is allowed leaves out.
Value<Row> prediction_value() {
  const auto print = [](const Row& row) {
    return std::isnan(row.kl_predicted) ? std::string() : fmt::format("{:.6g}", row.kl_predicted);
  };
  const auto parse = [](Row& row, const CsvCell& cell) {
    if (!cell.text.empty()) row.kl_predicted = cell.number();
  };
  return needed(Value<Row>{.print = print, .parse = parse});
}

template <class T>
Value<Row> of(T Row::*member) {
  return needed(value_of(member));
}

/// Whether an empty cell of the column stands for that of the row above. Ids may be none: `same_ids` as above or not.
bool is_shared(std::string_view column, bool same_ids) {
  constexpr std::string_view shared[] = {"trace", "sha256", "backends", "rtol", "atol", "ids_sha256"};
  return column == "ids" ? same_ids : std::ranges::find(shared, column) != std::end(shared);
}

void check_tolerances(const CsvTable& table, const CsvRow& line, const Row& row) {
  for (const auto& [name, value] : {std::pair{"rtol", row.rtol}, {"atol", row.atol}}) {
    if (!(0 <= value && value < 1)) table.cell(line, name).refuse("a tolerance of at least 0 and below 1");
  }
}

void check_ids(const CsvTable& table, const CsvRow& line, const Row& row) {
  const Index group = std::ssize(row.entries);
  if (row.ids.size() != 1 && std::ssize(row.ids) != group)
    table.cell(line, "ids").refuse(fmt::format("one list of ids, or one for each of the {} query heads", group));
  for (Index g = 0; g < group; ++g) {
    if (std::ssize(ids_of_head(row.ids, g)) != row.entries[static_cast<std::size_t>(g)])
      table.cell(line, "entries").refuse("the numbers of the ids; was one of them edited?");
  }
  if (row.ids_sha256 != digest_of(row.ids, group))
    table.cell(line, "ids_sha256").refuse("the digest of the ids; was one of them edited?");
}

}  // namespace

std::span<const Column<Row>> golden_columns() {
  static const std::vector<Column<Row>> table = {
      {"trace", "file name of the trace", of(&Row::trace)},
      {"sha256", "first 16 digits of the SHA-256 of the trace", of(&Row::sha256)},
      {"method", "method", of(&Row::method)},
      {"params", "parameters that differ from the defaults", of(&Row::params)},
      {"budget", "budget as given", of(&Row::budget)},
      {"seed", "seed; without effect for methods that draw nothing", of(&Row::seed)},
      {"protocol", "prefill or decode", of(&Row::protocol)},
      {"prompt", "prompt group", of(&Row::prompt)},
      {"layer", "layer of the model", of(&Row::layer)},
      {"kv_head", "kv head", of(&Row::kv_head)},
      {"backends", "back ends that give this row: ref, and the instruction sets scalar, avx2 and avx512 of cpu",
       list_of(&Row::backends)},
      {"budget_tokens", "what the budget means here, in tokens", of(&Row::budget_tokens)},
      {"total_bytes", "bytes held", of(&Row::total_bytes)},
      {"bytes_read", "bytes that one query reads", of(&Row::bytes_read)},
      {"entries",
       "this column and the next seven are about the query heads of the kv head, in ascending order; number of entries "
       "that answer the last query, without those that the harness keeps",
       list_of(&Row::entries)},
      {"ids_sha256",
       "first 16 digits of the SHA-256 of their ids as little-endian int32: for each query head the number of its ids, "
       "then the ids, "
       "ascending",
       of(&Row::ids_sha256)},
      {"ids",
       "the ids by their distances, `0+3 4 2` for 0 1 2 3 7 9, with a slash between query heads; one list where all "
       "have the same",
       ids_value()},
      {"weight_num", "sum of their weights in the numerator; empty where all weights are 1", list_of(&Row::weight_num)},
      {"weight_den", "sum of their weights in the denominator", list_of(&Row::weight_den)},
      {"rel_err", "mean of rel_err over the evaluated queries", list_of(&Row::rel_err)},
      {"rel_err_last", "rel_err of the last query; nan where it is not measured", list_of(&Row::rel_err_last)},
      {"recall", "mean of recall over the evaluated queries; empty where it does not apply", list_of(&Row::recall)},
      {"kl_predicted",
       "predicted KL of compressing this kv head alone, in nats per scored token; agrees within 1e-9 + 100 * rtol * "
       "|expected|; of snapkv, kmeans and q4_0, empty elsewhere",
       prediction_value()},
      {"rtol", "figures (weight_num to recall) agree within atol + rtol * |expected|", of(&Row::rtol)},
      {"atol", "the other part of this tolerance", of(&Row::atol)},
  };
  return table;
}

std::span<const Column<Verified>> verified_columns() {
  static const std::vector<Column<Verified>> table = [] {
    std::vector<Column<Verified>> columns;
    for (const Column<Row>& column : golden_columns()) {
      columns.push_back({column.key, column.doc,
                         Value<Verified>{.print = [&column](const Verified& v) { return column.value.print(v.row); },
                                         .number = column.value.number}});
    }
    columns.push_back({"backend", "back end on which the row was computed", value_of(&Verified::backend)});
    columns.push_back({"outcome",
                       "same; differs; missing: there is no golden row; gone: the golden row was not computed",
                       value_of(&Verified::outcome)});
    columns.push_back({"deviation", "largest difference of two figures, divided by the one that is allowed",
                       value_of(&Verified::deviation)});
    columns.push_back(
        {"difference", "what differs from the golden row, in sentences", value_of(&Verified::difference)});
    columns.push_back(report::version_column<Verified>());
    columns.push_back(report::commit_column<Verified>());
    return columns;
  }();
  return table;
}

std::string csv_of(std::span<const Row> rows) {
  std::vector<std::size_t> numbers;
  for (std::size_t r = 0; r < rows.size(); ++r) numbers.push_back(r);
  std::vector<Column<std::size_t>> columns;
  for (const Column<Row>& column : golden_columns()) {
    const auto print = [&column, rows](const std::size_t& r) {
      std::string text = column.value.print(rows[r]);
      const bool from_above = r > 0 && is_shared(column.key, rows[r].ids_sha256 == rows[r - 1].ids_sha256);
      return from_above && text == column.value.print(rows[r - 1]) ? std::string() : text;
    };
    columns.push_back({column.key, column.doc, Value<std::size_t>{.print = print}});
  }
  return report::csv_of(std::span<const Column<std::size_t>>(columns), std::span<const std::size_t>(numbers));
}

std::vector<Row> rows_of(CsvTable table) {
  require_columns(table, golden_columns(), "kvbench validate golden --write");
  const std::size_t digest = *table.find("ids_sha256");  // in front of the ids, which may be none
  for (const Column<Row>& one : golden_columns()) {
    const std::size_t column = *table.find(one.key);
    for (std::size_t r = 1; r < table.rows.size(); ++r) {
      std::vector<std::string>&cells = table.rows[r].cells, &above = table.rows[r - 1].cells;
      if (cells[column].empty() && is_shared(one.key, cells[digest] == above[digest])) cells[column] = above[column];
    }
  }
  const report::RowReader<Row> read(table, golden_columns());
  std::vector<Row> rows;
  std::size_t ids = 0;
  for (const CsvRow& line : table.rows) {
    const Row& row = rows.emplace_back(read(line));
    for (const auto& list : row.ids) ids += list.size();
    if (ids > most_ids_of_file)
      table.cell(line, "ids").refuse(fmt::format("short lists; the rows up to it have {} ids together", ids));
    check_tolerances(table, line, row);
    check_ids(table, line, row);
    if (row.sha256.size() < digest_digits)
      table.cell(line, "sha256").refuse(fmt::format("the first {} digits of the SHA-256 of a trace", digest_digits));
    if (row.sha256 != rows.front().sha256)
      table.cell(line, "sha256").refuse("that of the rows before it; golden rows are about one trace");
  }
  return rows;
}

}  // namespace kvbench::golden
