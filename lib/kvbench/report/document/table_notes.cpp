// SPDX-License-Identifier: Apache-2.0
// The marks that tables print, and what captions say of them: a table for LaTeX or Markdown stands alone.
#include <kvbench/report/document/document.hpp>

#include <algorithm>
#include <string_view>

namespace kvbench::report {
namespace {

/// Where a text of a table has the mark.
enum class At { whole, begin, end, inside, title };

struct TableMark {
  At at;
  std::string_view text, note;
};

constexpr TableMark table_marks[] = {
    {At::inside,
     "large: ", "large: the arithmetic mean is above 0.15 nats, where a prediction does not say how large damage is"},
    {At::begin, "outside", "outside: the error of a layer is too large for any prediction, measure it"},
    {At::begin, "tied, ", "tied: not distinguishable from the best"},
    {At::begin, "not tested, ", "not tested: no test against the best"},
    {At::end, "?", "?: not tested against the best"},
    {At::whole, "reference", "reference: not ranked"},
    {At::whole, "measure", "measure: not ranked, because it has no prediction"},
    {At::whole, "not estimable", "not estimable: a few huge errors determine the mean"},
    {At::whole, "too few queries", "too few queries: fewer than two blocks of them"},
    {At::begin, "geometric ", "geometric: mean of the logarithms over layers and texts"},
    {At::whole, "–", "–: no result"},
    {At::title, "adjusted", "adjusted: for the number of comparisons, by Holm"},
    {At::title, "95 % interval", "95 % interval: of the mean over more queries, documents and texts of this kind"},
    {At::inside, " [", "in brackets: the 95 % interval of the mean"},
};

bool shows(const std::string& text, const TableMark& mark) {
  switch (mark.at) {
    case At::whole:
      return text == mark.text;
    case At::begin:
      return text.starts_with(mark.text);
    case At::end:
      return text.size() > mark.text.size() && text.ends_with(mark.text);
    default:
      return text.find(mark.text) != text.npos;
  }
}

/// Prose explains itself.
bool shows(const DocTable& table, const TableMark& mark) {
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    if (mark.at == At::title && shows(table.columns[c].title, mark)) return true;
    const auto in_cell = [&](const auto& row) { return c < row.size() && shows(row[c].text, mark); };
    if (mark.at != At::title && c > 0 && !table.columns[c].prose && std::ranges::any_of(table.rows, in_cell))
      return true;
  }
  return false;
}

}  // namespace

std::vector<std::string> notes_of(const DocTable& table) {
  std::vector<std::string> out;
  const bool brackets_titled = std::ranges::any_of(
      table.columns, [](const TableColumn& column) { return column.title.find("interval]") != std::string::npos; });
  const bool intervals_titled = table.title.find("95 % interval") != std::string::npos;
  for (const TableMark& mark : table_marks) {
    const bool titled = (mark.text == " [" && brackets_titled) || (mark.at == At::title && intervals_titled);
    if (!titled && shows(table, mark)) out.emplace_back(mark.note);
  }
  return out;
}

}  // namespace kvbench::report
