// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/document/document.hpp>

#include <algorithm>
#include <iterator>
#include <map>
#include <string_view>

#include <fmt/format.h>

#include <kvbench/core/error.hpp>
#include <kvbench/core/name.hpp>

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

std::optional<Figure> take_first_drawing(std::vector<Figure>& figures) {
  const auto drawn = std::ranges::find_if(figures, [](const Figure& figure) { return !figure.drawings.empty(); });
  if (drawn == figures.end()) return std::nullopt;
  Figure first = *drawn;
  first.drawings.resize(1);
  drawn->drawings.erase(drawn->drawings.begin());
  return first;
}

void name_source(std::vector<Block>& blocks, const std::string& source, const std::string& budgets,
                 const std::string& bars) {
  for (Block& block : blocks) {
    if (auto* const table = std::get_if<DocTable>(&block)) table->source = source;
    auto* const figure = std::get_if<Figure>(&block);
    if (figure == nullptr) continue;
    if (!bars.empty()) figure->alone = figure->alone.empty() ? bars : bars + " " + figure->alone;
    if (figure->alone.empty()) figure->alone = figure->caption;
    figure->source = source, figure->budgets = budgets;
  }
}

/// What a file of a drawing says below it.
std::string words_below(const Figure& figure, const Drawing& drawing) {
  if (figure.source.empty()) return figure.alone.empty() ? figure.title + ". " + figure.caption : figure.alone;
  const std::string& budgets = drawing.budgets.empty() ? figure.budgets : drawing.budgets;
  return fmt::format("{}{}{}. {}", figure.source, budgets.empty() ? "" : "; ", budgets, figure.alone);
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

namespace {

/// "Error at 25 % of the memory" -> "error-at-25-of-the-memory".
std::string short_name(const std::string& title) {
  std::string out;
  for (const char c : title) {
    const bool upper = c >= 'A' && c <= 'Z';
    if (upper || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '+')
      out += static_cast<char>(upper ? c - 'A' + 'a' : c);
    else if (c != '%' && !out.empty() && out.back() != '-')
      out += '-';
  }
  while (!out.empty() && out.back() == '-') out.pop_back();
  return out;
}

std::string names_text(const std::vector<NamedDrawing>& drawings) {
  std::vector<std::string> names;
  for (const NamedDrawing& d : drawings) names.push_back(d.name);
  return listed(names);
}

}  // namespace

std::vector<NamedDrawing> drawings_of(const Document& document) {
  std::vector<NamedDrawing> out;
  std::map<std::string, int> used;
  for (const Block& block : document.blocks) {
    const auto* figure = std::get_if<Figure>(&block);
    if (figure == nullptr) continue;
    for (const Drawing& drawing : figure->drawings) {
      const std::string own = short_name(drawing.title);
      std::string name = short_name(figure->title);
      if (name.find(own) == std::string::npos) name += "/" + own;
      const int number = ++used[name];
      out.push_back({number == 1 ? name : fmt::format("{}-{}", name, number), &drawing, words_below(*figure, drawing)});
    }
  }
  return out;
}

NamedDrawing find_drawing(const Document& document, const std::string& name) {
  const std::vector<NamedDrawing> all = drawings_of(document);
  std::vector<NamedDrawing> found;
  for (const NamedDrawing& d : all) {
    if (d.name == name) return d;
    if (d.name.find(name) != std::string::npos) found.push_back(d);
  }
  if (found.size() == 1) return found.front();
  if (found.empty())
    throw Error("--figure {}: there is no such figure; the figures are {} (--figure list shows all)", name,
                names_text(all));
  throw Error("--figure {}: {} figures have this in their names: {}; give more of the name", name, found.size(),
              names_text(found));
}

namespace {

// The marks that tables print, and what captions say of them: a table for LaTeX or Markdown stands alone.

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
