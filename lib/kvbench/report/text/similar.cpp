// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/text/similar.hpp>

#include <algorithm>
#include <charconv>
#include <vector>

namespace kvbench::report {
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

}  // namespace kvbench::report
