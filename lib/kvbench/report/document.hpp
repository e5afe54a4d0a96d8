// SPDX-License-Identifier: Apache-2.0
// A report before it is HTML or Markdown: what is said, in which order.
#pragma once

#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace kvbench {

enum class Tone { plain, dim, bad };

struct TableCell {
  std::string text;
  Tone tone = Tone::plain;
  TableCell(std::string t = "", Tone how = Tone::plain) : text(std::move(t)), tone(how) {}
  TableCell(const char* t) : text(t) {}
};

struct TableColumn {
  std::string title;
  bool number = false;  ///< stands at the right
  bool prose = false;   ///< sentences: wraps, and is given room
};

struct DocTable {
  std::string title;  ///< caption; what a folded table is called
  std::vector<TableColumn> columns;
  std::vector<std::vector<TableCell>> rows;
  bool folded = false;
  std::size_t merged = 0;  ///< so many first columns show a value once where it stands in several rows one below the other
};

/// Without the columns that are empty throughout.
DocTable compact(DocTable table);

struct Heading {
  int level;  ///< 2 or 3
  std::string text;
};

struct Paragraph {
  std::string text;
};

/// An SVG element and how wide it wants to be.
struct Drawing {
  std::string svg;
  int width;           ///< px
  bool rigid = false;  ///< neither shrinks nor grows; otherwise to 4/5 and 6/5
};

struct Figure {
  std::string title;
  std::vector<Drawing> drawings;  ///< side by side where there is room
  std::string caption;
  DocTable numbers;  ///< what is drawn, to copy
  bool folded = false;
};

using Block = std::variant<Heading, Paragraph, DocTable, Figure>;

struct Document {
  std::string title, description, made_by;
  std::vector<Block> blocks;
};

/// One file that needs nothing else: no network, no script; light and dark, on paper and on a narrow screen.
std::string html(const Document& document);

/// The words and tables of a report; of a figure its caption and its numbers.
std::string markdown(const Document& document);

}  // namespace kvbench
