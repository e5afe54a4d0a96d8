// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/text/sentences.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <kvbench/core/name.hpp>
#include <kvbench/report/text/text.hpp>

namespace kvbench::report {
namespace {

/// What follows the number of a budget.
std::string unit_of(const Budget& budget) {
  if (budget.is_bytes()) return "";
  if (!budget.is_share()) return " tokens";
  if (budget.cost() == CostKind::memory) return " % of the memory";
  if (budget.cost() == CostKind::fast) return " % of the fast memory";
  return budget.cost() == CostKind::read ? " % of the bytes read" : " % of the tokens";
}

std::string number_of(const Budget& budget) {
  return budget.is_share() ? fmt::format("{:.4g}", 100 * budget.share()) : budget.text();
}

}  // namespace

double distance_from_quarter(const Budget& budget) {
  return budget.is_share() ? std::abs(std::log(budget.share() / 0.25)) : 1e9;
}

std::string budget_words(const Budget& budget) { return budget_words({&budget, 1}); }

std::string budget_words(std::span<const Budget> budgets) {
  std::string out;
  for (std::size_t i = 0; i < budgets.size(); ++i) {
    const Budget& budget = budgets[i];
    const std::string unit = unit_of(budget);
    out += (i > 0 ? ", " : "") + number_of(budget);
    const bool again = i + 1 < budgets.size() && unit_of(budgets[i + 1]) == unit;
    out += !again ? unit : budget.is_share() ? " %" : "";
  }
  return out;
}

std::vector<Budget> main_budgets(const std::vector<Budget>& budgets) {
  std::vector<Budget> out;
  for (const Budget& budget : budgets) {
    const auto known = std::ranges::find(out, budget.cost(), &Budget::cost);
    if (known == out.end()) {
      out.push_back(budget);
    } else if (distance_from_quarter(budget) < distance_from_quarter(*known)) {
      *known = budget;
    }
  }
  return out;
}

std::string at_budget(const Budget& budget) {
  if (budget.cost() == CostKind::read) return fmt::format("Reading {:.4g} % of the bytes", 100 * budget.share());
  return (budget.is_share() ? "At " : "At a budget of ") + budget_words(budget);
}

std::string wins_text(std::string_view figure, std::vector<std::pair<std::string, std::int64_t>> wins,
                      std::int64_t texts) {
  std::ranges::stable_sort(wins, std::greater{}, [](const auto& win) { return win.second; });
  std::string out;
  for (const auto& [name, count] : wins) {
    if (count == 0) continue;
    out += out.empty() ? fmt::format("{} has the lowest {} on {} of {} texts", name, figure, count, texts)
                       : fmt::format(", {} on {}", name, count);
  }
  return out;
}

std::string listed_up_to(std::vector<std::string> names, std::size_t most) {
  if (names.size() <= most) return listed(names);
  const std::size_t more = names.size() - most;
  names.resize(most);
  return fmt::format("{} and {} more", fmt::join(names, ", "), more);
}

namespace {

/// A word of a sentence, with the punctuation around it.
struct Word {
  std::string before, core, after;
  double number = 0;
  bool is_number = false;
};

Word word_of(std::string_view text) {
  constexpr std::string_view open = "(['\"", close = ".,;:)]'\"";
  std::size_t begin = 0, end = text.size();
  while (begin < end && open.find(text[begin]) != open.npos) ++begin;
  while (end > begin && close.find(text[end - 1]) != close.npos) --end;
  Word word{std::string(text.substr(0, begin)), std::string(text.substr(begin, end - begin)),
            std::string(text.substr(end))};
  const char* last = word.core.data() + word.core.size();
  const auto [stop, code] = std::from_chars(word.core.data(), last, word.number);
  word.is_number = code == std::errc{} && stop == last;
  return word;
}

std::vector<Word> words_of(const std::string& sentence) {
  std::vector<Word> words;
  for (std::size_t begin = 0; begin <= sentence.size();) {
    const std::size_t end = std::min(sentence.find(' ', begin), sentence.size());
    words.push_back(word_of(std::string_view(sentence).substr(begin, end - begin)));
    begin = end + 1;
  }
  return words;
}

}  // namespace

std::string without_numbers(const std::string& sentence) {
  std::string out;
  bool counted = false;  // the word before is a number
  for (Word& word : words_of(sentence)) {
    if (counted && word.core.ends_with('s')) word.core.pop_back();
    counted = word.is_number;
    out += (out.empty() ? "" : " ") + word.before + (word.is_number ? "#" : word.core) + word.after;
  }
  return out;
}

std::string with_ranges(std::span<const std::string> sentences) {
  std::vector<std::vector<Word>> all;
  for (const std::string& sentence : sentences) all.push_back(words_of(sentence));
  std::string out;
  for (std::size_t w = 0; w < all.front().size(); ++w) {
    Word least = all.front()[w], most = least;
    for (const std::vector<Word>& words : all) {
      if (words[w].is_number && words[w].number < least.number) least = words[w];
      if (words[w].is_number && words[w].number > most.number) most = words[w];
      if (words[w].core.size() > most.core.size() && !most.is_number) most = words[w];  // the plural
    }
    const std::string range = most.is_number && least.number < most.number ? least.core + " to " : "";
    out += (w > 0 ? " " : "") + most.before + range + most.core + most.after;
  }
  return out;
}

std::string wrapped(const std::string& text, std::size_t width, std::size_t indent) {
  std::string out, line;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(' ', begin), text.size());
    const std::string word = text.substr(begin, end - begin);
    if (!line.empty() && line.size() + 1 + word.size() > width) {
      out += line + "\n";
      line = std::string(indent, ' ') + word;
    } else {
      line += (begin == 0 ? "" : " ") + word;
    }
    begin = end + 1;
  }
  return out + line + "\n";
}

namespace {

using evidence::Mark;
using evidence::Standing;

/// "a (1.27 times)" where the ratio was tested, else "a (0.1)", "a (KL 0.1)".
std::string listed_mark(const Mark& mark, const StandingWords& words) {
  if (words.table) return mark.name;
  if (!std::isnan(mark.interval.lo)) return fmt::format("{} ({:.3g} times)", mark.name, mark.ratio);
  return fmt::format("{} ({}{})", mark.name, words.unit, short_number(mark.mean));
}

std::string listed_marks(const std::vector<Mark>& marks, const StandingWords& words,
                         std::vector<std::string> first = {}) {
  for (const Mark& mark : marks) first.push_back(listed_mark(mark, words));
  return listed_up_to(std::move(first));
}

/// The first one that is worse. Those that no test tells from the best may have larger ratios, if they differ more
/// from text to text: then it is not "the next".
std::string next_text(const Standing& s, const StandingWords& words) {
  const Mark* next = s.next();
  if (next == nullptr || words.table) return "";
  const bool in_order = s.tied.empty() || !(s.tied.back().ratio > next->ratio);
  const char* can = in_order ? "" : ", can";
  if (!std::isfinite(next->ratio)) return fmt::format("; the next is {}", listed_mark(*next, words));
  std::string out = fmt::format("; {}{}{} with {:.3g} times the {}", in_order ? "the next is " : "", next->name,
                                in_order ? "" : ",", next->ratio, words.quantity);
  if (!std::isnan(next->interval.lo))
    out += fmt::format(" (adjusted 95 % interval {} to {})", short_number(next->interval.lo),
                       short_number(next->interval.hi));
  return out + can;
}

/// Over what the rows were tested, and how far that carries.
std::string tested_text(const Standing& s) {
  const std::string units = s.tested_over();
  if (units.empty()) return "";
  const bool few = units == "3 texts" || units == "4 texts";  // and all layers
  return fmt::format(" Tested over {}{}.", units,
                     units.ends_with("queries") || units.ends_with("probes of layers")
                         ? ", for the replayed layers and texts alone"
                     : units.find(" on th") != units.npos                     ? ""
                     : units.ends_with("layers") || units.ends_with("probes") ? ", for the replayed texts alone"
                     : few ? ", which leave much undecided; five texts or more decide most"
                           : "");
}

}  // namespace

std::string standing_sentence(const Standing& s, const StandingWords& words) {
  if (s.is_undecided()) {
    const std::vector<Mark>& others = s.tied.empty() ? s.untested : s.tied;
    const std::string best = fmt::format("{} ({})", s.best.name, words.best);
    return fmt::format("{}, {} cannot tell which method {}: {}.{}", words.at, words.rows, words.is_best,
                       listed_marks(others, words, {best}), tested_text(s));
  }
  const std::string of = s.compared() > 1 ? fmt::format(" of the {} methods run", s.compared()) : "";
  std::string out = fmt::format("{}, {} {}{} ({})", words.at, s.best.name, words.is_best, of, words.figures);
  if (!s.tied.empty())
    out += fmt::format("; {} cannot be told from it{}", listed_marks(s.tied, words), words.table ? " (~)" : "");
  return out + next_text(s, words) + "." + tested_text(s);
}

std::string untested_sentence(const Standing& s, const StandingWords& words) {
  if (s.untested.empty()) return "";
  return fmt::format(
      "{}. {}", s.tested() == 0 ? "Nothing was tested" : "Not tested against it: " + listed_marks(s.untested, words),
      words.needs);
}

}  // namespace kvbench::report
