// SPDX-License-Identifier: Apache-2.0
#include <kvbench/eval/tasks/task_text.hpp>

#include <algorithm>
#include <unordered_set>

#include <kvbench/core/error.hpp>
#include <kvbench/core/name.hpp>
#include <kvbench/methods/stages/draws.hpp>

namespace kvbench::eval {

TaskDraws::TaskDraws(std::uint32_t seed, std::string_view task, Index document)
    : key_{seed, methods::fnv1a32(task)}, document_(static_cast<std::uint32_t>(document)) {}

double TaskDraws::uniform() {
  const PhiloxBlock words = philox4x32({{document_, count_++, 0, 0}}, key_);
  return uniform52(words.x[0], words.x[1]);
}

std::size_t TaskDraws::below(std::size_t count) {
  return static_cast<std::size_t>(uniform() * static_cast<double>(count));
}

namespace {

constexpr std::size_t longest_line = 512;  // bytes: longer lines are split at spaces

bool continues_character(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

/// The first byte of a line, or of a word where lines are long, at or after `at`; the end of the text where there is
/// none.
std::size_t line_start(std::string_view text, std::size_t at) {
  if (at == 0) return 0;
  const std::size_t line = text.find('\n', at - 1);
  if (line < at + longest_line) return line + 1;
  const std::size_t word = text.find(' ', at - 1);
  if (word < at + longest_line) return word + 1;
  while (at < text.size() && continues_character(text[at])) ++at;
  return at;
}

/// The first line of the text, or the part of it that a long line is split into. The text is not empty.
std::string_view first_line(std::string_view text) {
  const std::size_t end = text.substr(0, longest_line).find('\n');
  if (end != text.npos) return text.substr(0, end + 1);
  if (text.size() <= longest_line) return text;
  const std::size_t space = text.substr(0, longest_line).rfind(' ');
  if (space != text.npos) return text.substr(0, space + 1);
  std::size_t length = longest_line;
  while (length > 1 && continues_character(text[length])) --length;
  return text.substr(0, length);
}

[[noreturn]] void too_short(const TaskRequest& request, Index have, Index need) {
  throw Error(
      "{}: is too short: the part of a document has {} tokens of the {} that the task takes from it, at `documents` "
      "{}; give a longer text, fewer documents or a shorter context",
      request.haystack_name, have, need, request.documents);
}

[[noreturn]] void none_left(const TaskRequest& request) {
  throw Error("{}: contains nearly all numbers or letters that could serve as keys; give another text",
              request.haystack_name);
}

/// The part of the haystack that belongs to a document: parts of different documents do not overlap.
std::string_view excerpt(const TaskRequest& request, Index document) {
  const std::string_view text = request.haystack;
  const auto boundary = [&](Index d) {
    return line_start(text, text.size() / static_cast<std::size_t>(request.documents) * static_cast<std::size_t>(d));
  };
  const std::size_t begin = boundary(document);
  return text.substr(begin, document + 1 == request.documents ? text.npos : boundary(document + 1) - begin);
}

}  // namespace

Tokens passage(const TaskRequest& request, Index document, TaskDraws& draws, Index count) {
  const std::string_view part = excerpt(request, document);
  const std::size_t random_start = line_start(part, draws.below(part.size() + 1));
  const auto needed = static_cast<std::size_t>(count);
  Tokens tokens;
  for (const std::size_t start : {random_start, std::size_t{0}}) {
    for (std::size_t bytes = 8 * needed;; bytes *= 2) {
      tokens = request.tokenize(std::string(part.substr(start, bytes)));
      // The last tokens of a text that is cut off may differ from those of the whole text.
      if (tokens.size() >= needed + 16 || start + bytes >= part.size()) break;
    }
    if (tokens.size() >= needed) {
      tokens.resize(needed);
      return tokens;
    }
  }
  too_short(request, std::ssize(tokens), count);
}

std::vector<Tokens> filler_lines(const TaskRequest& request, Index document, TaskDraws& draws, Index count) {
  const std::string_view part = excerpt(request, document);
  const std::size_t start = line_start(part, draws.below(part.size() + 1));
  std::vector<Tokens> lines;
  Index total = 0;
  for (const std::string_view stretch : {part.substr(start), part.substr(0, start)}) {
    for (std::string_view rest = stretch; !rest.empty() && total < count;) {
      const std::string_view line = first_line(rest);
      rest.remove_prefix(line.size());
      lines.push_back(request.tokenize(std::string(line)));
      total += std::ssize(lines.back());
    }
  }
  if (total < count) too_short(request, total, count);
  cut_front(lines, count);
  return lines;
}

void cut_front(std::vector<Tokens>& lines, Index count) {
  Index excess = -count;
  for (const Tokens& line : lines) excess += std::ssize(line);
  for (Tokens& line : lines) {
    const Index cut = std::clamp(excess, Index{0}, Index{std::ssize(line)});
    line.erase(line.begin(), line.begin() + cut);
    excess -= cut;
  }
}

std::vector<std::string> shuffled_words(const TaskRequest& request, TaskDraws& draws, std::size_t least) {
  std::unordered_set<std::string> words;
  std::string word;
  for (const char c : request.haystack + '\n') {
    const char letter = lower_case(c);
    if (letter >= 'a' && letter <= 'z') {
      word += letter;
      continue;
    }
    if (word.size() >= 3 && word.size() <= 10) words.insert(word);
    word.clear();
  }
  if (words.size() < least) {
    throw Error(
        "{}: has {} different words of 3 to 10 Latin letters, of which the task needs {}; give a longer text or a "
        "shorter context",
        request.haystack_name, words.size(), least);
  }
  std::vector<std::string> out(words.begin(), words.end());
  std::ranges::sort(out);  // the order of a hash table depends on the library
  draws.shuffle(out);
  return out;
}

std::string FreshTexts::fresh(std::string_view first, std::string_view others, std::size_t size) {
  for (int attempt = 0; attempt < 1000; ++attempt) {
    std::string text(1, first[draws_->below(first.size())]);
    while (text.size() < size) text += others[draws_->below(others.size())];
    if (take(text)) return text;
  }
  none_left(*request_);
}

bool FreshTexts::take(const std::string& text) {
  return request_->haystack.find(text) == std::string::npos && used_.insert(text).second;
}

std::string FreshTexts::number(std::size_t digits) { return fresh("123456789", "0123456789", digits); }

std::string FreshTexts::number_beside(const std::string& number, std::size_t place) {
  std::string digits = place == 0 ? "123456789" : "0123456789";
  for (digits.erase(digits.find(number[place]), 1); !digits.empty();) {
    const std::size_t drawn = draws_->below(digits.size());
    std::string text = number;
    text[place] = digits[drawn];
    if (take(text)) return text;
    digits.erase(drawn, 1);
  }
  none_left(*request_);
}

std::string FreshTexts::variable() {
  constexpr std::string_view letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
  return fresh(letters, letters, 5);
}

}  // namespace kvbench::eval
