// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/document/document.hpp>

#include <algorithm>
#include <iterator>

namespace kvbench::report {

DocTable compact(DocTable table) {
  for (std::size_t c = table.columns.size(); c-- > 0;) {
    if (std::ranges::any_of(table.rows, [&](const auto& row) { return row.size() <= c || !row[c].text.empty(); }))
      continue;
    const auto at = static_cast<std::ptrdiff_t>(c);
    table.columns.erase(table.columns.begin() + at);
    for (auto& row : table.rows) row.erase(row.begin() + at);
    if (c < table.merged) --table.merged;
  }
  return table;
}

AnswerBlock without(AnswerBlock answer, const std::vector<std::string>& said) {
  std::erase_if(answer.sentences, [&](const std::string& sentence) { return std::ranges::count(said, sentence) > 0; });
  return answer;
}

std::optional<Figure> take_first_drawing(std::vector<Figure>& figures) {
  const auto drawn = std::ranges::find_if(figures, [](const Figure& figure) { return !figure.drawings.empty(); });
  if (drawn == figures.end()) return std::nullopt;
  Figure first = *drawn;
  first.drawings.resize(1);
  drawn->drawings.erase(drawn->drawings.begin());
  return first;
}

void append(std::vector<Block>& blocks, std::vector<Block> more) {
  std::ranges::move(more, std::back_inserter(blocks));
}

void append_filled(std::vector<Block>& blocks, Block block) {
  const auto* const table = std::get_if<DocTable>(&block);
  const auto* const figure = std::get_if<Figure>(&block);
  const auto* const answer = std::get_if<AnswerBlock>(&block);
  const bool filled = table != nullptr    ? !table->rows.empty()
                      : figure != nullptr ? !figure->drawings.empty()
                                          : answer == nullptr || !answer->sentences.empty();
  if (filled) blocks.push_back(std::move(block));
}

void append_folded(std::vector<Block>& blocks, const std::string& heading, std::vector<Block> more) {
  if (more.empty()) return;
  blocks.emplace_back(Heading{3, heading, true});
  append(blocks, std::move(more));
}

}  // namespace kvbench::report
