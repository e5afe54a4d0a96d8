// SPDX-License-Identifier: Apache-2.0
#include <kvbench/eval/tasks/rows.hpp>

#include <array>

#include <fmt/format.h>

#include <kvbench/eval/tasks/assemble.hpp>

namespace kvbench::eval {
namespace {

constexpr std::array<std::string_view, 4> candidates = {"north", "east", "south", "west"};

/// `count` candidates in random order, each as often as the others, or once more.
std::vector<std::string> balanced_answers(TaskDraws& draws, std::size_t count) {
  const std::size_t first = draws.below(candidates.size());
  std::vector<std::string> out;
  for (std::size_t i = 0; i < count; ++i) out.emplace_back(candidates[(first + i) % candidates.size()]);
  draws.shuffle(out);
  return out;
}

TaskDocument make_rules(const TaskRequest& request, Index document) {
  TaskDraws draws(request.seed, "rules", document);
  const auto asked = static_cast<std::size_t>(request.questions), count = std::max(2 * asked, candidates.size());
  const std::vector<std::string> signs = shuffled_words(request, draws, count),
                                 answers = balanced_answers(draws, count);
  std::vector<Needle> needles;
  std::vector<Question> questions;
  for (std::size_t i = 0; i < count; ++i) {
    const std::string lead = fmt::format("When the sign is {}, the answer is <", signs[i]);
    needles.push_back({{lead, answers[i], ">.\n"}, 0});  // all at the beginning, in this order
    questions.push_back({fmt::format("The sign is {}. What is the answer?", signs[i]), lead, {{answers[i], ">.", i}}});
  }
  draw_questions(request, draws, questions);
  return assemble(request, haystack_filler(request, document, draws), needles, questions);
}

}  // namespace

TaskInfo rules_task() {
  return {.name = "rules",
          .measures =
              "whether instructions at the beginning still decide the answers at the end: without its rule each of "
              "four answers is as likely",
          .form =
              "`When the sign is amber, the answer is <north>.`, twice as many rules as questions, then the text "
              "file; each question is the beginning of a rule, and the four answers are those of equally many rules",
          .exact_match = true,
          .several = true,
          .make = make_rules};
}

}  // namespace kvbench::eval
