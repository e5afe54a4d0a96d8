// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/document/writers.hpp>

#include <string>
#include <vector>

#include <fmt/ranges.h>

namespace kvbench::report {
namespace {

/// Escapes everything that would start a cell, a line, code, emphasis, a link or a tag.
std::string escaped(const std::string& text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const bool link = c == ']' && i + 1 < text.size() && text[i + 1] == '(';
    if (c == '\n' || c == '\r') {
      out += ' ';
    } else if (c == '<') {
      out += "&lt;";
    } else if (c == '&') {
      out += "&amp;";
    } else {
      if (c == '|' || c == '*' || c == '`' || c == '\\' || link) out += '\\';
      out += c;
    }
  }
  return out;
}

/// One line of a table of escaped cells.
std::string row_line(const std::vector<std::string>& cells) { return fmt::format("| {} |\n", fmt::join(cells, " | ")); }

std::string table_text(const DocTable& table) {
  std::vector<std::string> cells, rules;
  for (const TableColumn& column : table.columns) {
    cells.push_back(escaped(column.title));
    rules.emplace_back(column.number ? "---:" : "---");
  }
  std::string out = row_line(cells) + row_line(rules);
  for (const auto& row : table.rows) {
    cells.clear();
    for (const TableCell& cell : row) {
      const bool strong = !cell.text.empty() && cell.tone == Tone::bad;
      cells.push_back(strong ? "**" + escaped(cell.text) + "**" : escaped(cell.text));
    }
    cells.resize(table.columns.size());
    out += row_line(cells);
  }
  if (const std::vector<std::string> notes = notes_of(table); !notes.empty())
    out += fmt::format("\n{}.\n", escaped(fmt::format("{}", fmt::join(notes, "; "))));
  return out;
}

struct MarkdownWriter {
  std::string out;

  void operator()(const Heading& heading) {
    out += fmt::format("\n{} {}\n", std::string(static_cast<std::size_t>(heading.level), '#'), escaped(heading.text));
  }
  void operator()(const Paragraph& paragraph) {
    if (!paragraph.of_drawings) out += fmt::format("\n{}\n", escaped(paragraph.text));
  }
  void operator()(const AnswerBlock& answer) {
    if (!answer.scope.empty()) out += fmt::format("\n**{}**\n", escaped(answer.scope));
    out += '\n';
    for (const std::string& sentence : answer.sentences) out += fmt::format("- {}\n", escaped(sentence));
  }
  void operator()(const DocTable& table) {
    if (table.paper) return;
    const std::string text = table_text(table);
    if (table.folded) {
      out += fmt::format("\n<details><summary>{}</summary>\n\n{}\n</details>\n", escaped(table.title), text);
    } else {
      if (!table.title.empty()) out += fmt::format("\n**{}**\n", escaped(table.title));
      out += '\n' + text;
    }
  }
  void operator()(const Figure& figure) {
    if (figure.numbers.columns.empty()) return;
    DocTable numbers = figure.numbers;
    numbers.title = fmt::format("{}: {}", figure.title, numbers.title);
    numbers.folded = true;
    (*this)(numbers);
  }
};

}  // namespace

std::string markdown(std::span<const Block> blocks) {
  MarkdownWriter writer;
  for (const Block& block : blocks) std::visit(writer, block);
  return writer.out.starts_with('\n') ? writer.out.substr(1) : writer.out;
}

std::string markdown(const Document& document) {
  MarkdownWriter writer;
  for (const AnswerBlock& answer : document.answers) writer(answer);
  for (const Block& block : document.blocks) std::visit(writer, block);
  std::string out = fmt::format("# {}\n", escaped(document.title));
  if (!document.description.empty()) out += fmt::format("\n{}\n", escaped(document.description));
  return out + writer.out + fmt::format("\n---\n{}\n", escaped(document.made_by));
}

}  // namespace kvbench::report
