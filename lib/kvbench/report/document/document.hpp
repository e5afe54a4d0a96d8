// SPDX-License-Identifier: Apache-2.0
// The contents of a page or of what a command prints, from which HTML, Markdown, LaTeX and text for a terminal are
// written.
// Drawings of a document by name.
#pragma once

#include <concepts>
#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <kvbench/report/shapes/shape.hpp>
#include <kvbench/report/text/text.hpp>

namespace kvbench::report {

/// best, tied: the best of several cells, and what cannot be told from it.
enum class Tone { plain, dim, bad, best, tied };

struct TableCell {
  std::string text;
  Tone tone = Tone::plain;
  std::string key;        ///< a number by which a script sorts the column; empty: the text
  std::string link = "";  ///< a relative path that the text of a page leads to; empty: none
  TableCell(std::string t = "", Tone how = Tone::plain, std::string sorted = "")
      : text(std::move(t)), tone(how), key(std::move(sorted)) {}
  TableCell(const char* t) : text(t) {}
  /// A count, a budget, or the name of an enumerator.
  template <class T>
  requires(std::integral<T> || std::is_enum_v<T> || std::is_same_v<T, Budget>) TableCell(const T& value)
      : text(value_text(value)) {}
};

struct TableColumn {
  std::string title;
  bool number = false;  ///< aligned to the right
  bool prose = false;   ///< sentences or lists of names: wide, with line breaks
  bool screen = false;  ///< left out of tables for LaTeX, which must fit a printed page
};

struct DocTable {
  std::string title = "";  ///< caption, also of a folded table; may be empty where the first column says it
  std::vector<TableColumn> columns = {};
  std::vector<std::vector<TableCell>> rows =
      {};  ///< in a row of fewer cells, the last is a sentence over the other columns
  bool folded = false;
  bool sortable = false;    ///< a script may sort and filter the rows
  bool screen = false;      ///< left out of LaTeX
  bool paper = false;       ///< in LaTeX alone
  std::size_t merged = 0;   ///< number of first columns that show equal values in consecutive rows once
  std::string source = "";  ///< what it is about, which a caption in LaTeX names
};

/// A column of a table about rows: its head, and the cell that a row has in it.
template <class Row>
struct RowColumn {
  TableColumn head;
  std::function<TableCell(const Row&)> cell;
};

/// The table with these columns, and a line for each of the rows, or of pointers to them.
template <class Row>
DocTable filled(DocTable table, const std::vector<RowColumn<Row>>& columns, const auto& rows) {
  for (const RowColumn<Row>& column : columns) table.columns.push_back(column.head);
  for (const auto& row : rows) {
    auto& cells = table.rows.emplace_back();
    for (const RowColumn<Row>& column : columns) {
      if constexpr (std::is_pointer_v<std::remove_cvref_t<decltype(row)>>)
        cells.push_back(column.cell(*row));
      else
        cells.push_back(column.cell(row));
    }
  }
  return table;
}

/// The table without the columns that are empty in all rows.
DocTable compact(DocTable table);

struct Heading {
  int level;  ///< 2 or 3
  std::string text;
  bool folded = false;  ///< the blocks up to the next heading of this level or above it are shown on demand
};

struct Paragraph {
  std::string text;
  bool of_drawings = false;  ///< introduces figures: left out where they are not drawn
};

struct Figure {
  std::string title;
  std::vector<Drawing> drawings = {};  ///< side by side where there is room
  std::string caption = "";
  std::string source = "";   ///< what is drawn, without the budgets; named in a file of one drawing
  std::string budgets = "";  ///< those of the drawings that do not say theirs, in words
  std::string alone = "";    ///< what a file of one drawing says of its marks; "": the caption, with a source or title
  DocTable numbers = {};     ///< the values that are drawn; without columns: another table of the section has them
  bool folded = false;
};

/// Sentences that answer the reader's question.
struct AnswerBlock {
  std::string scope;  ///< what the sentences hold for; may be empty
  std::vector<std::string> sentences = {};
};

using Block = std::variant<Heading, Paragraph, DocTable, Figure, AnswerBlock>;

/// A section of a page: what its rows answer, then its figure and its table; folded: all others.
struct Section {
  std::string title;
  std::vector<AnswerBlock> answers = {};  ///< the sentences with which a page may open
  bool whole = false;                     ///< a page opens with all of them
  std::vector<Block> blocks = {};
  bool folded = false;
};

struct Document {
  std::string title = "", description = "", made_by = "";
  std::vector<AnswerBlock> answers = {};  ///< shown first
  std::vector<Block> blocks = {};
};

/// A figure of the first drawing of all, which is taken from its figure; none where nothing is drawn.
std::optional<Figure> take_first_drawing(std::vector<Figure>& figures);

/// What each mark in the cells of a table means, in the order of one list: "large: above ...". None for words that say
/// it themselves.
std::vector<std::string> notes_of(const DocTable& table);

/// Says what figures and tables of the blocks are about, for files of one drawing and for LaTeX. `budgets`: those of
/// drawings that do not say theirs, in words. `bars`: what bars mean in all of them, as a sentence.
void name_source(std::vector<Block>& blocks, const std::string& source, const std::string& budgets,
                 const std::string& bars = "");

/// Appends.
void append(std::vector<Block>& blocks, std::vector<Block> more);
/// Appends a table with rows, a figure with drawings, an answer with sentences; nothing where it has none.
void append_filled(std::vector<Block>& blocks, Block block);
/// Appends what a reader may open, beneath a heading of level 3; nothing where there is no block.
void append_folded(std::vector<Block>& blocks, const std::string& heading, std::vector<Block> more);

struct NamedDrawing {
  std::string name;  ///< of its figure, and its own where that of the figure lacks it: "error-by-layer/budget-25mem"
  const Drawing* drawing;
  std::string alone;  ///< what a file of it alone says below it: source, budgets and marks
};

/// All drawings of the document, in its order, with distinct names.
std::vector<NamedDrawing> drawings_of(const Document& document);

/// The drawing of this name, or the only one whose name contains the text. Throws Error with the names where there is
/// none or are several.
NamedDrawing find_drawing(const Document& document, const std::string& name);

}  // namespace kvbench::report
