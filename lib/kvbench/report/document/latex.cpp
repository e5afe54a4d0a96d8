// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/document/latex.hpp>

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

std::string column_kinds(const DocTable& table) {
  std::string out;
  for (const TableColumn& column : table.columns) out += column.prose ? "p{4cm}" : column.number ? "r" : "l";
  return out;
}

/// A cell that begins with [ or * stands behind {}, because LaTeX would take it for an option of the end of the line
/// before. No {} stands behind that end, where it would begin a cell and \midrule must not follow.
std::string line_of(const std::vector<std::string>& cells) {
  const bool like_option = !cells.front().empty() && (cells.front()[0] == '[' || cells.front()[0] == '*');
  return fmt::format("{}{} \\\\\n", like_option ? "{}" : "", fmt::join(cells, " & "));
}

std::string head_of(const DocTable& table) {
  std::vector<std::string> cells;
  for (const TableColumn& column : table.columns) cells.push_back(latex_text(column.title));
  return "\\toprule\n" + line_of(cells) + "\\midrule\n";
}

std::string body_of(const DocTable& table) {
  std::string out;
  for (const auto& row : table.rows) {
    std::vector<std::string> cells;
    for (const TableCell& cell : row) {
      const std::string text = latex_text(cell.text);
      cells.push_back(cell.tone == Tone::bad && !text.empty() ? "\\textbf{" + text + "}" : text);
    }
    out += line_of(cells);
  }
  return out;
}

std::string table_latex(const DocTable& table) {
  const std::string caption = latex_text(table.title), kinds = column_kinds(table);
  if (table.rows.size() > rows_of_a_page) {
    return fmt::format(
        "\n\\begin{{longtable}}{{{}}}\n\\caption{{{}}} \\\\\n{}\\endhead\n{}\\bottomrule\n\\end{{longtable}}\n", kinds,
        caption, head_of(table), body_of(table));
  }
  return fmt::format(
      "\n\\begin{{table}}\n\\centering\n\\caption{{{}}}\n\\begin{{tabular}}{{{}}}\n{}{}\\bottomrule\n\\end{{tabular}}\n"
      "\\end{{table}}\n",
      caption, kinds, head_of(table), body_of(table));
}

}  // namespace

std::string latex(const Document& document) {
  std::string out = fmt::format("% {}\n% \\usepackage{{booktabs,longtable}} \\usepackage[T1]{{fontenc}}\n",
                                printable(document.made_by));
  for (const Block& block : document.blocks) {
    const auto* table = std::get_if<DocTable>(&block);
    if (table != nullptr && !table->folded && !table->columns.empty()) out += table_latex(*table);
  }
  return out;
}

}  // namespace kvbench::report
