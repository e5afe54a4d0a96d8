// SPDX-License-Identifier: Apache-2.0
#include <kvbench/eval/tasks/rows.hpp>

#include <fmt/format.h>

#include <kvbench/core/error.hpp>
#include <kvbench/eval/tasks/assemble.hpp>

namespace kvbench::eval {
namespace {

/// Lines of different keys: the name of a line is a pair of words.
class Register {
 public:
  Register(const TaskRequest& request, TaskDraws& draws)
      : words_(shuffled_words(request, draws, 64)), fresh_(request, draws) {}

  struct Line {
    std::string name, lead, number;
    std::vector<std::string> texts() const { return {lead, number, ">\n"}; }
  };
  Line next() {
    const std::size_t half = words_.size() / 2;
    if (made_ == half * half)
      throw Error("`context_tokens`: the text has too few different words for a context this long");
    const std::string name = fmt::format("{}-{}", words_[made_ % half], words_[half + (made_ + made_ / half) % half]);
    ++made_;
    return {name, fmt::format("line {}: REGISTER_CONTENT is <", name), fresh_.number()};
  }

 private:
  std::vector<std::string> words_;
  FreshTexts fresh_;
  std::size_t made_ = 0;
};

TaskDocument make_lines(const TaskRequest& request, Index document) {
  TaskDraws draws(request.seed, "lines", document);
  const auto asked = static_cast<std::size_t>(request.question_inside ? 1 : request.questions);
  const std::vector<double> depths = spread_depths(request, document, asked, draws);
  Register lines(request, draws);
  std::vector<Needle> needles;
  std::vector<Question> questions;
  for (std::size_t i = 0; i < asked; ++i) {
    const Register::Line line = lines.next();
    needles.push_back({line.texts(), depths[i]});
    questions.push_back(
        {fmt::format("What is the REGISTER_CONTENT of line {}?", line.name), line.lead, {{line.number, ">", i}}});
  }
  draws.shuffle(questions);
  const Filler others = [&](Index count) {
    std::vector<Tokens> out;
    for (Index total = 0; total < count; total += std::ssize(out.back())) {
      out.emplace_back();
      for (const std::string& text : lines.next().texts()) append_tokens(out.back(), request.tokenize(text));
    }
    cut_front(out, count);
    return out;
  };
  return assemble(request, others, needles, questions);
}

}  // namespace

TaskInfo lines_task() {
  return {
      .name = "lines",
      .measures = "whether one of many equal statements is found where nothing but its key tells it apart (LongEval)",
      .form =
          "lines `line amber-river: REGISTER_CONTENT is <12345>` that fill the context; each question is the beginning "
          "of one. Small models manage contexts of a few hundred tokens",
      .exact_match = true,
      .several = true,
      .make = make_lines};
}

}  // namespace kvbench::eval
