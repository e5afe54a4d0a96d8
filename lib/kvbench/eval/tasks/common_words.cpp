// SPDX-License-Identifier: Apache-2.0
#include <kvbench/eval/tasks/rows.hpp>

#include <algorithm>

#include <kvbench/core/error.hpp>
#include <kvbench/eval/tasks/assemble.hpp>

namespace kvbench::eval {
namespace {

constexpr std::size_t times_of_rare = 3;

/// Shuffled blocks of all common words and as many rare ones, each of which occurs in `times_of_rare` blocks.
class WordList {
 public:
  WordList(const std::vector<std::string>& words, std::size_t common, TaskDraws& draws)
      : words_(&words), common_(common), draws_(&draws) {}

  std::vector<std::string> next_block() {
    const std::size_t rare = common_ * (1 + blocks_++ / times_of_rare);
    if (rare + common_ > words_->size())
      throw Error("`context_tokens`: the text has too few different words for a context this long");
    const auto begin = words_->begin();
    std::vector<std::string> block(begin, begin + static_cast<std::ptrdiff_t>(common_));
    block.insert(block.end(), begin + static_cast<std::ptrdiff_t>(rare),
                 begin + static_cast<std::ptrdiff_t>(rare + common_));
    draws_->shuffle(block);
    return block;
  }

 private:
  const std::vector<std::string>* words_;
  std::size_t common_, blocks_ = 0;
  TaskDraws* draws_;
};

TaskDocument make_common_words(const TaskRequest& request, Index document) {
  TaskDraws draws(request.seed, "common_words", document);
  const auto common = static_cast<std::size_t>(request.questions);
  std::vector<std::string> words = shuffled_words(request, draws, 4 * common);
  std::sort(words.begin(), words.begin() + request.questions);
  Question question{"Which words are the most common ones of the list, in alphabetic order?",
                    "The most common words of the list, in alphabetic order, are <",
                    {}};
  for (std::size_t i = 0; i < common; ++i) question.replies.push_back({words[i], ">, <", {}});
  const Filler list = [&](Index count) {
    WordList blocks(words, common, draws);
    std::vector<Tokens> out;
    for (Index total = 0; total < count;) {
      for (const std::string& word : blocks.next_block()) {
        out.emplace_back();
        for (const std::string& text : {std::string("<"), word, std::string(">\n")})
          append_tokens(out.back(), request.tokenize(text));
        total += std::ssize(out.back());
      }
    }
    cut_front(out, count);
    return out;
  };
  return assemble(request, list, {}, {question});
}

}  // namespace

TaskInfo common_words_task() {
  return {.name = "common-words",
          .measures =
              "whether the context as a whole is kept: the answer stands nowhere, it must be counted (common words of "
              "RULER)",
          .form =
              "a list `<amber>`, `<river>`, ... that fills the context, in which some words are common and the others "
              "occur three times; the question is `The most common words of the list, in alphabetic order, are <`, and "
              "each word is an answer",
          .exact_match = true,
          .several = true,
          .make = make_common_words};
}

}  // namespace kvbench::eval
