// SPDX-License-Identifier: Apache-2.0
// A tokeniser for tests: runs of letters, single digits, and runs of other characters are tokens, so that joining two
// texts can change the tokens at the seam.
#pragma once

#include <cctype>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <kvbench/eval/tasks.hpp>

namespace kvbench::eval_test {

class WordTokenizer {
 public:
  std::vector<int> operator()(const std::string& text) const {
    std::vector<int> out;
    for (std::size_t begin = 0, end = 0; begin < text.size(); begin = end) {
      end = begin + 1;
      while (end < text.size() && kind(text[begin]) != 'd' && kind(text[end]) == kind(text[begin])) ++end;
      out.push_back(id(text.substr(begin, end - begin)));
    }
    return out;
  }
  std::string text(std::span<const int> ids) const {
    std::string out;
    for (const int id : ids) out += words_->at(static_cast<std::size_t>(id));
    return out;
  }

 private:
  static char kind(char c) {
    const auto byte = static_cast<unsigned char>(c);
    return std::isdigit(byte) ? 'd' : std::isalpha(byte) ? 'a' : 'o';
  }
  int id(const std::string& word) const {
    const auto [known, fresh] = ids_->try_emplace(word, static_cast<int>(words_->size()));
    if (fresh) words_->push_back(word);
    return known->second;
  }
  std::shared_ptr<std::map<std::string, int>> ids_ = std::make_shared<std::map<std::string, int>>();
  std::shared_ptr<std::vector<std::string>> words_ = std::make_shared<std::vector<std::string>>();
};

/// A text of `lines` lines of eight words each; no two words are equal.
inline std::string made_text(int lines) {
  std::string out;
  for (int i = 0; i < lines; ++i) {
    for (int w = 0; w < 8; ++w) {
      int number = 8 * i + w;
      std::string word = "w";
      for (int letter = 0; letter < 4; ++letter, number /= 26) word += static_cast<char>('a' + number % 26);
      out += word + (w < 7 ? ' ' : '\n');
    }
  }
  return out;
}

}  // namespace kvbench::eval_test
