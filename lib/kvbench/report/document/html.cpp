// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/document/writers.hpp>

#include <algorithm>

#include <fmt/ranges.h>

#include <kvbench/report/shapes/looks.hpp>
#include <kvbench/report/text/text.hpp>

namespace kvbench::report {
namespace {

const char* tone_class(Tone tone) {
  constexpr const char* names[] = {"", "dim", "bad", "", ""};
  return names[static_cast<std::size_t>(tone)];
}

/// The text with its names whole: browsers break lines behind hyphens, as in subgen-kcenter.
std::string whole_names(const std::string& text) {
  constexpr std::size_t longest = 30;  // longer ones may have to break on narrow screens
  std::string out;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(' ', begin), text.size());
    const std::string word = text.substr(begin, end - begin);
    const bool whole = word.find('-') != std::string::npos && word.size() > 1 && word.size() <= longest;
    out += (begin > 0 ? " " : "") +
           (whole ? fmt::format("<span class=\"w\">{}</span>", escape_xml(word)) : escape_xml(word));
    begin = end + 1;
  }
  return out;
}

/// Number of consecutive rows from `row` on with equal text in all columns up to `column`.
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
  const std::vector<TableCell>& cells = table.rows[row];
  const bool last = column + 1 == cells.size() && cells.size() < table.columns.size();
  const std::string attributes = (classes.empty() ? "" : fmt::format(" class=\"{}\"", classes)) +
                                 (span > 1 ? fmt::format(" rowspan=\"{}\"", span) : "") +
                                 (last ? fmt::format(" colspan=\"{}\"", table.columns.size() - column) : "");
  const std::string key = cell.key.empty() ? "" : fmt::format(" data-v=\"{}\"", escape_xml(cell.key));
  const char* tag = column == 0 ? "th" : "td";
  const char* scope = column > 0 ? "" : span > 1 ? " scope=\"rowgroup\"" : " scope=\"row\"";
  const std::string text = head.prose ? whole_names(cell.text) : escape_xml(cell.text);
  return fmt::format("<{}{}{}{}>{}</{}>", tag, scope, attributes, key,
                     cell.link.empty() ? text : fmt::format("<a href=\"{}\">{}</a>", escape_xml(cell.link), text), tag);
}

std::string rows_html(const DocTable& table) {
  std::string out = "<tbody>\n";
  std::vector<std::size_t> covered(table.merged, 0);  // per column: first row that the last merged cell does not span
  for (std::size_t r = 0; r < table.rows.size(); ++r) {
    const TableCell& first = table.rows[r][0];
    out += table.sortable && first.link.empty() ? fmt::format("<tr data-m=\"{}\">", escape_xml(first.text)) : "<tr>";
    for (std::size_t c = 0; c < table.rows[r].size(); ++c) {
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

/// The title, and the table in a box that scrolls where the table is wider than the page.
std::string table_html(const DocTable& table, bool titled) {
  const std::string title = escape_xml(table.title);
  std::string out = titled ? fmt::format("<p class=\"title\">{}</p>\n", title) : "";
  out += fmt::format("<div class=\"box\" role=\"region\" tabindex=\"0\" aria-label=\"{}\">\n<table{}>\n<thead><tr>",
                     title, table.sortable ? " class=\"sortable\"" : "");
  for (const TableColumn& column : table.columns)
    out += fmt::format("<th scope=\"col\"{}>{}</th>", column.number ? " class=\"n\"" : "", escape_xml(column.title));
  out += "</tr></thead>\n" + rows_html(table) + "</table>\n</div>\n";
  if (const std::vector<std::string> notes = notes_of(table); !notes.empty())
    out += fmt::format("<p class=\"marks\">{}.</p>\n", escape_xml(fmt::format("{}", fmt::join(notes, "; "))));
  return out;
}

std::string folded_html(const std::string& summary, const std::string& content) {
  return fmt::format("<details>\n<summary>{}</summary>\n{}</details>\n", escape_xml(summary), content);
}

std::string counted(const DocTable& table) {
  return fmt::format("{} ({} {})", table.title, table.rows.size(), table.rows.size() == 1 ? "row" : "rows");
}

constexpr int narrow_screen = 440;  // px that a screen of 500 px has for a drawing, beside a scroll bar

/// As many columns of equal width as fit on the page; each drawing in a box that scrolls where the screen is narrower
/// than the smallest size of the drawing. Drawings shrink by a fifth, and further where a narrow screen then has them
/// whole.
std::string drawings_html(const Figure& figure) {
  int least = 0;
  std::string boxes;
  for (const Drawing& drawing : figure.drawings) {
    const int width = static_cast<int>(drawing.width);
    const int shrunk = drawing.rigid ? width : std::min(width * 4 / 5, std::max(narrow_screen, width * 3 / 5));
    const int most = drawing.rigid ? width : width * 6 / 5;
    least = std::max(least, drawing.rigid ? width : width * 19 / 20);
    boxes += fmt::format(
        "<div class=\"box\" role=\"region\" tabindex=\"0\" aria-label=\"{}\">\n"
        "<div style=\"min-width:{}px;max-width:{}px\">\n{}</div>\n</div>\n",
        escape_xml(figure.title), shrunk, most, svg_element(drawing));
  }
  return fmt::format(
      "<div class=\"drawings\" "
      "style=\"grid-template-columns:repeat(auto-fill,minmax(min(100%,{}px),1fr))\">\n{}</div>\n",
      least, boxes);
}

std::string answer_html(const AnswerBlock& answer) {
  std::string out =
      fmt::format("<section class=\"answer\">\n<p class=\"scope\">{}</p>\n<ul>\n", escape_xml(answer.scope));
  for (const std::string& sentence : answer.sentences) out += fmt::format("<li>{}</li>\n", whole_names(sentence));
  return out + "</ul>\n</section>\n";
}

struct HtmlWriter {
  std::string out;
  std::size_t headings = 0;
  std::vector<int> folded = {};  ///< levels of the headings beneath which blocks are folded now, the outer one first

  /// Ends folded blocks before a heading of this level.
  void unfold(int level) {
    for (; !folded.empty() && level <= folded.back(); folded.pop_back()) out += "</details>\n";
  }
  void operator()(const Heading& heading) {
    unfold(heading.level);
    const std::string text =
        fmt::format("<h{0} id=\"s{1}\">{2}</h{0}>", heading.level, ++headings, escape_xml(heading.text));
    out += heading.folded ? fmt::format("<details class=\"part\">\n<summary>{}</summary>\n", text) : text + "\n";
    if (heading.folded) folded.push_back(heading.level);
  }
  void operator()(const Paragraph& paragraph) { out += fmt::format("<p>{}</p>\n", escape_xml(paragraph.text)); }
  void operator()(const AnswerBlock& answer) { out += answer_html(answer); }
  void operator()(const DocTable& table) {
    if (table.paper) return;
    out += table.folded ? folded_html(counted(table), table_html(table, false)) : table_html(table, true);
  }
  void operator()(const Figure& figure) {
    std::string body = "<figure>\n";
    if (!figure.folded) body += fmt::format("<p class=\"title\">{}</p>\n", escape_xml(figure.title));
    body += drawings_html(figure);
    if (!figure.caption.empty()) body += fmt::format("<figcaption>{}</figcaption>\n", escape_xml(figure.caption));
    if (!figure.numbers.columns.empty())
      body += folded_html(counted(figure.numbers), table_html(figure.numbers, false));
    body += "</figure>\n";
    out += figure.folded ? folded_html(figure.title, body) : body;
  }
};

/// Links to the sections, where there are several beside the inputs.
std::string contents(const Document& document) {
  constexpr int fewest = 3;
  std::string out = "<nav aria-label=\"Contents\">\n<ul>\n";
  std::size_t number = 0;
  int listed = 0;
  for (const Block& block : document.blocks) {
    const auto* heading = std::get_if<Heading>(&block);
    if (heading == nullptr) continue;
    ++number;
    if (heading->level > 2) continue;
    ++listed;
    out += fmt::format("<li><a href=\"#s{}\">{}</a></li>\n", number, escape_xml(heading->text));
  }
  return listed < fewest ? "" : out + "</ul>\n</nav>\n";
}

}  // namespace

std::string html(const Document& document) {
  HtmlWriter writer;
  for (const Block& block : document.blocks) std::visit(writer, block);
  writer.unfold(1);
  const std::string title = escape_xml(document.title);
  std::string out = fmt::format(
      "{}<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n<title>{}</title>\n<style>\n{}</style>\n</head>\n<body>\n"
      "<header>\n<h1>{}</h1>\n",
      html_opening, title, std::string(report_css()) + looks_css(), title);
  if (!document.description.empty()) out += fmt::format("<p>{}</p>\n", escape_xml(document.description));
  for (const AnswerBlock& answer : document.answers) out += answer_html(answer);
  out += "</header>\n" + contents(document) + "<main>\n" + writer.out + "</main>\n";
  return out + fmt::format("<footer>{}</footer>\n<script>\n{}</script>\n</body>\n</html>\n",
                           escape_xml(document.made_by), report_js());
}

}  // namespace kvbench::report
