// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/document/writers.hpp>

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include <kvbench/report/text/sentences.hpp>

namespace kvbench::report {
namespace {

/// Sentences of shorter rows do not count.
std::vector<std::size_t> widths_of(const DocTable& table) {
  std::vector<std::size_t> widths;
  for (const TableColumn& column : table.columns) widths.push_back(column.title.size());
  for (const auto& row : table.rows) {
    const std::size_t counted = row.size() < widths.size() ? row.size() - 1 : row.size();
    for (std::size_t c = 0; c < counted; ++c) widths[c] = std::max(widths[c], row[c].text.size());
  }
  return widths;
}

std::string aligned(const DocTable& table) {
  const std::vector<std::size_t> widths = widths_of(table);
  std::string out, line;
  const auto add = [&](std::size_t column, const std::string& text, bool right) {
    line += column > 0 ? "  " : "";
    line += right ? fmt::format("{:>{}}", text, widths[column]) : fmt::format("{:<{}}", text, widths[column]);
  };
  const auto end = [&] {
    out += line.substr(0, line.find_last_not_of(' ') + 1) + '\n';
    line.clear();
  };
  for (std::size_t c = 0; c < widths.size(); ++c) add(c, table.columns[c].title, table.columns[c].number);
  end();
  for (const auto& row : table.rows) {
    const bool sentence = row.size() < widths.size();
    for (std::size_t c = 0; c < row.size(); ++c)
      add(c, row[c].text, table.columns[c].number && !(sentence && c + 1 == row.size()));
    end();
  }
  return out;
}

class TerminalWriter {
 public:
  std::string out;

  void operator()(const Heading& heading) {
    apart();
    out += heading.text + '\n';
  }
  void operator()(const Paragraph& paragraph) {
    if (paragraph.of_drawings) return;
    out += wrapped(paragraph.text, terminal_width, 0);
    introduces_ = !of_table_;
  }
  void operator()(const AnswerBlock& answer) {
    apart();
    const bool scoped = !answer.scope.empty();
    if (scoped) out += answer.scope + '\n';
    for (const std::string& sentence : answer.sentences)
      out += wrapped((scoped ? "  " : "") + sentence, terminal_width, scoped ? 6 : 4);
  }
  void operator()(const DocTable& table) {
    if (table.columns.empty()) return;
    if (!introduces_) apart();
    if (!table.title.empty()) out += table.title + '\n';
    out += aligned(table);
    of_table_ = true, introduces_ = false;
  }
  void operator()(const Figure& figure) { (*this)(figure.numbers); }

 private:
  bool introduces_ = false;  // the last block is a paragraph, to which a table that follows belongs
  bool of_table_ = false;    // paragraphs now belong to the table above them

  void apart() {
    out += out.empty() ? "" : "\n";
    of_table_ = introduces_ = false;
  }
};

}  // namespace

std::string terminal_text(std::span<const Block> blocks) {
  TerminalWriter writer;
  for (const Block& block : blocks) std::visit(writer, block);
  return writer.out;
}

std::vector<Block> shortened(std::vector<Block> blocks,
                             const std::function<std::vector<std::string>(std::size_t rows)>& last) {
  std::size_t dropped = 0;  // of the last sentences, of which one stays
  const auto last_sentences = [&](std::size_t rows) {
    std::vector<std::string> sentences = last(rows);
    std::erase(sentences, "");
    sentences.erase(sentences.begin(), sentences.begin() + static_cast<std::ptrdiff_t>(dropped));
    return sentences;
  };
  const auto rows_of = [&] {
    std::size_t rows = 0;
    for (const Block& block : blocks) {
      if (const auto* const table = std::get_if<DocTable>(&block)) rows += table->rows.size();
    }
    return rows;
  };
  const auto whole = [&] {
    std::vector<Block> out = blocks;
    for (std::string& sentence : last_sentences(rows_of())) out.emplace_back(Paragraph{std::move(sentence)});
    return out;
  };
  const auto too_long = [&] {
    const std::string text = terminal_text(whole());
    return static_cast<std::size_t>(std::ranges::count(text, '\n')) > answer_lines;
  };
  for (Block& block : blocks) {
    auto* const table = std::get_if<DocTable>(&block);
    while (table != nullptr && table->rows.size() > 1 && too_long()) table->rows.pop_back();
  }
  while (last_sentences(rows_of()).size() > 1 && too_long()) ++dropped;
  while (blocks.size() > 1 && too_long()) blocks.pop_back();
  return whole();
}

}  // namespace kvbench::report
