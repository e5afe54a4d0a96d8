// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/document/writers.hpp>

#include <algorithm>
#include <string_view>

#include <fmt/ranges.h>

#include <kvbench/core/utf8.hpp>

namespace kvbench::report {
namespace {

constexpr std::size_t rows_of_a_page = 45;

/// Escapes everything that commands LaTeX; characters beyond ASCII stay UTF-8.
std::string latex_text(const std::string& text) {
  constexpr std::pair<std::string_view, std::string_view> special[] = {{"\\", "\\textbackslash{}"},
                                                                       {"~", "\\textasciitilde{}"},
                                                                       {"^", "\\textasciicircum{}"},
                                                                       {"<", "\\textless{}"},
                                                                       {">", "\\textgreater{}"},
                                                                       {"|", "\\textbar{}"},
                                                                       {"\"", "\\textquotedbl{}"},
                                                                       {"--", "-{}-{}"},
                                                                       {"–", "--"},
                                                                       {"…", "\\ldots{}"},
                                                                       {"&", "\\&"},
                                                                       {"%", "\\%"},
                                                                       {"$", "\\$"},
                                                                       {"#", "\\#"},
                                                                       {"_", "\\_"},
                                                                       {"{", "\\{"},
                                                                       {"}", "\\}"},
                                                                       {"\n", " "},
                                                                       {"\r", " "}};
  const std::string clean = printable(text, "\n\r");
  std::string out;
  for (std::size_t i = 0; i < clean.size();) {
    std::string_view taken = std::string_view(clean).substr(i, 1), written = taken;
    for (const auto& [from, to] : special) {
      if (std::string_view(clean).substr(i).starts_with(from)) taken = from, written = to;
    }
    out += written;
    i += taken.size();
  }
  return out;
}

/// Columns of prose share 60 % of the line.
std::string column_kinds(const DocTable& table) {
  const auto prose = std::ranges::count_if(table.columns, &TableColumn::prose);
  std::string out;
  for (const TableColumn& column : table.columns)
    out += column.prose    ? fmt::format("p{{{:.2f}\\linewidth}}", 0.6 / static_cast<double>(prose))
           : column.number ? "r"
                           : "l";
  return out;
}

DocTable without_screen_columns(DocTable table) {
  for (std::size_t c = table.columns.size(); c-- > 0;) {
    if (!table.columns[c].screen) continue;
    const auto at = static_cast<std::ptrdiff_t>(c);
    table.columns.erase(table.columns.begin() + at);
    for (auto& row : table.rows) row.erase(row.begin() + at);
  }
  return table;
}

/// A cell that begins with [ or * stands behind {}, because LaTeX would take it for an option of the end of the line
/// before. No {} stands behind that end, where it would begin a cell and \midrule must not follow.
std::string line_of(const std::vector<std::string>& cells) {
  const bool like_option = !cells.front().empty() && (cells.front()[0] == '[' || cells.front()[0] == '*');
  return fmt::format("{}{} \\\\\n", like_option ? "{}" : "", fmt::join(cells, " & "));
}

/// A title of two lines, if it is longer than most numbers: broken at the space nearest to its middle. {} keeps a [
/// from being an option of the line break.
std::string title_of(const TableColumn& column) {
  constexpr std::size_t short_title = 8;
  const std::string& title = column.title;
  std::size_t at = title.npos;
  const auto off_middle = [&](std::size_t i) {
    return i < title.size() - i ? title.size() - 2 * i : 2 * i - title.size();
  };
  for (std::size_t i = title.find(' '); i != title.npos; i = title.find(' ', i + 1)) {
    if (at == title.npos || off_middle(i) < off_middle(at)) at = i;
  }
  if (column.prose || title.size() <= short_title || at == title.npos) return latex_text(title);
  return fmt::format("\\shortstack[{}]{{{}\\\\{{}}{}}}", column.number ? 'r' : 'l', latex_text(title.substr(0, at)),
                     latex_text(title.substr(at + 1)));
}

std::string head_of(const DocTable& table) {
  std::vector<std::string> cells;
  for (const TableColumn& column : table.columns) cells.push_back(title_of(column));
  return "\\toprule\n" + line_of(cells) + "\\midrule\n";
}

std::string body_of(const DocTable& table) {
  std::string out;
  for (const auto& row : table.rows) {
    std::vector<std::string> cells;
    for (const TableCell& cell : row) {
      const bool bold = cell.tone == Tone::bad || cell.tone == Tone::best;
      const char* command = cell.text.empty() ? "" : bold ? "\\textbf" : cell.tone == Tone::tied ? "\\underline" : "";
      const std::string text = latex_text(cell.text);
      cells.push_back(*command == 0 ? text : fmt::format("{}{{{}}}", command, text));
    }
    out += line_of(cells);
  }
  return out;
}

/// In small print, at the width of the text at most. A table of several pages cannot be scaled.
std::string table_latex(const DocTable& table) {
  const std::vector<std::string> notes = notes_of(table);
  std::string words = table.title + (notes.empty() ? "" : fmt::format(" ({})", fmt::join(notes, "; ")));
  if (!table.source.empty()) words += fmt::format("{} {}.", words.ends_with('.') ? "" : ".", table.source);
  const std::string caption = latex_text(words);
  const std::string kinds = column_kinds(table);
  if (table.rows.size() > rows_of_a_page)
    return fmt::format(
        "\n{{\\footnotesize\\setlength{{\\tabcolsep}}{{3pt}}\n\\begin{{longtable}}{{@{{}}{}@{{}}}}\n\\caption{{{}}} "
        "\\\\\n{}\\endhead\n{}\\bottomrule\n\\end{{longtable}}}}\n",
        kinds, caption, head_of(table), body_of(table));
  return fmt::format(
      "\n\\begin{{table}}\n\\centering\\footnotesize\\setlength{{\\tabcolsep}}{{3pt}}\n\\caption{{{}}}\n"
      "\\resizebox{{\\ifdim\\width>\\linewidth\\linewidth\\else\\width\\fi}}{{!}}{{%\n"
      "\\begin{{tabular}}{{@{{}}{}@{{}}}}\n{}{}\\bottomrule\n\\end{{tabular}}}}\n\\end{{table}}\n",
      caption, kinds, head_of(table), body_of(table));
}

}  // namespace

std::string latex(const Document& document) {
  std::string out = fmt::format("% {}\n% \\usepackage{{booktabs,graphicx,longtable}} \\usepackage[T1]{{fontenc}}\n",
                                printable(document.made_by));
  for (const Block& block : document.blocks) {
    const auto* table = std::get_if<DocTable>(&block);
    if (table == nullptr || table->folded || table->screen || table->columns.empty()) continue;
    out += table_latex(without_screen_columns(*table));
  }
  return out;
}

}  // namespace kvbench::report
