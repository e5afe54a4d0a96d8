// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <fmt/format.h>

#include <kvbench/report/document.hpp>
#include <kvbench/report/html_style.hpp>
#include <kvbench/report/text.hpp>

namespace kvbench {
namespace {

const char* tone_class(Tone tone) {
  constexpr const char* names[] = {"", "dim", "bad"};
  return names[static_cast<std::size_t>(tone)];
}

/// How many rows from `row` on show the same text in column `column` and in all before it.
std::size_t rows_alike(const DocTable& table, std::size_t row, std::size_t column) {
  std::size_t count = 1;
  const auto alike = [&](std::size_t other) {
    for (std::size_t c = 0; c <= column; ++c) {
      if (table.rows[other][c].text != table.rows[row][c].text) return false;
    }
    return true;
  };
  while (row + count < table.rows.size() && alike(row + count)) ++count;
  return count;
}

std::string cell_html(const DocTable& table, std::size_t row, std::size_t column, std::size_t span) {
  const TableCell& cell = table.rows[row][column];
  const TableColumn& head = table.columns[column];
  std::string classes = tone_class(cell.tone);
  if (head.number) classes += classes.empty() ? "n" : " n";
  if (head.prose) classes += classes.empty() ? "p" : " p";
  const std::string attributes =
      (classes.empty() ? "" : fmt::format(" class=\"{}\"", classes)) + (span > 1 ? fmt::format(" rowspan=\"{}\"", span) : "");
  const char* tag = column == 0 ? "th" : "td";
  const char* scope = column > 0 ? "" : span > 1 ? " scope=\"rowgroup\"" : " scope=\"row\"";
  return fmt::format("<{}{}{}>{}</{}>", tag, scope, attributes, escape_xml(cell.text), tag);
}

std::string rows_html(const DocTable& table) {
  std::string out = "<tbody>\n";
  std::vector<std::size_t> covered(table.merged, 0);  // up to which row a cell above reaches
  for (std::size_t r = 0; r < table.rows.size(); ++r) {
    out += "<tr>";
    for (std::size_t c = 0; c < table.columns.size(); ++c) {
      std::size_t span = 1;
      if (c < table.merged) {
        if (r < covered[c]) continue;
        span = rows_alike(table, r, c);
        covered[c] = r + span;
      }
      out += cell_html(table, r, c, span);
    }
    out += "</tr>\n";
  }
  return out + "</tbody>\n";
}

/// Its title, and the table in a box that scrolls by itself where the table is wider than the page.
std::string table_html(const DocTable& table, bool titled) {
  const std::string title = escape_xml(table.title);
  std::string out = titled ? fmt::format("<p class=\"title\">{}</p>\n", title) : "";
  out += fmt::format("<div class=\"box\" role=\"region\" tabindex=\"0\" aria-label=\"{}\">\n<table>\n<thead><tr>", title);
  for (const TableColumn& column : table.columns)
    out += fmt::format("<th scope=\"col\"{}>{}</th>", column.number ? " class=\"n\"" : "", escape_xml(column.title));
  return out + "</tr></thead>\n" + rows_html(table) + "</table>\n</div>\n";
}

std::string folded_html(const std::string& summary, const std::string& content) {
  return fmt::format("<details>\n<summary>{}</summary>\n{}</details>\n", escape_xml(summary), content);
}

std::string counted(const DocTable& table) {
  return fmt::format("{} ({} {})", table.title, table.rows.size(), table.rows.size() == 1 ? "row" : "rows");
}

/// Columns of equal width, as many as the page holds; each drawing in a box that scrolls by itself where the screen is narrower
/// than the drawing can be.
std::string drawings_html(const Figure& figure) {
  int least = 0;
  std::string boxes;
  for (const Drawing& drawing : figure.drawings) {
    const int shrunk = drawing.rigid ? drawing.width : drawing.width * 4 / 5;
    const int most = drawing.rigid ? drawing.width : drawing.width * 6 / 5;
    least = std::max(least, drawing.rigid ? drawing.width : drawing.width * 19 / 20);
    boxes += fmt::format(
        "<div class=\"box\" role=\"region\" tabindex=\"0\" aria-label=\"{}\">\n"
        "<div style=\"min-width:{}px;max-width:{}px\">\n{}</div>\n</div>\n",
        escape_xml(figure.title), shrunk, most, drawing.svg);
  }
  return fmt::format(
      "<div class=\"drawings\" style=\"grid-template-columns:repeat(auto-fill,minmax(min(100%,{}px),1fr))\">\n{}</div>\n",
      least, boxes);
}

struct HtmlWriter {
  std::string out;
  std::size_t headings = 0;

  void operator()(const Heading& heading) {
    out += fmt::format("<h{0} id=\"s{1}\">{2}</h{0}>\n", heading.level, ++headings, escape_xml(heading.text));
  }
  void operator()(const Paragraph& paragraph) { out += fmt::format("<p>{}</p>\n", escape_xml(paragraph.text)); }
  void operator()(const DocTable& table) {
    out += table.folded ? folded_html(counted(table), table_html(table, false)) : table_html(table, true);
  }
  void operator()(const Figure& figure) {
    std::string body = "<figure>\n";
    if (!figure.folded) body += fmt::format("<p class=\"title\">{}</p>\n", escape_xml(figure.title));
    body += drawings_html(figure) + fmt::format("<figcaption>{}</figcaption>\n", escape_xml(figure.caption));
    body += folded_html(counted(figure.numbers), table_html(figure.numbers, false)) + "</figure>\n";
    out += figure.folded ? folded_html(figure.title, body) : body;
  }
};

std::string contents(const Document& document) {
  std::string out = "<nav aria-label=\"Contents\">\n<ul>\n";
  std::size_t number = 0;
  for (const Block& block : document.blocks) {
    const auto* heading = std::get_if<Heading>(&block);
    if (heading == nullptr) continue;
    ++number;
    if (heading->level == 2) out += fmt::format("<li><a href=\"#s{}\">{}</a></li>\n", number, escape_xml(heading->text));
  }
  return out + "</ul>\n</nav>\n";
}

}  // namespace

std::string html(const Document& document) {
  HtmlWriter writer;
  for (const Block& block : document.blocks) std::visit(writer, block);
  const std::string title = escape_xml(document.title);
  std::string out = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n<title>{}</title>\n<style>\n{}</style>\n</head>\n<body>\n"
      "<header>\n<h1>{}</h1>\n",
      title, html_style(), title);
  if (!document.description.empty()) out += fmt::format("<p>{}</p>\n", escape_xml(document.description));
  out += "</header>\n" + contents(document) + "<main>\n" + writer.out + "</main>\n";
  return out + fmt::format("<footer>{}</footer>\n</body>\n</html>\n", escape_xml(document.made_by));
}

}  // namespace kvbench
