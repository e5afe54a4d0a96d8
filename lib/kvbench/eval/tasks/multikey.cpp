// SPDX-License-Identifier: Apache-2.0
#include <kvbench/eval/tasks/rows.hpp>

#include <fmt/format.h>

#include <kvbench/eval/tasks/assemble.hpp>

namespace kvbench::eval {
namespace {

TaskDocument make_multikey(const TaskRequest& request, Index document) {
  TaskDraws draws(request.seed, "multikey", document);
  const auto asked = static_cast<std::size_t>(request.questions), count = 2 * asked;
  const std::vector<std::string> keys = shuffled_words(request, draws, count);
  const std::vector<double> depths = spread_depths(request, document, count, draws);
  FreshTexts fresh(request, draws);
  std::vector<Needle> needles;
  std::vector<Question> questions;
  for (std::size_t i = 0; i < count; ++i) {
    const std::string lead = fmt::format("The magic number of {} is <", keys[i]), number = fresh.number();
    needles.push_back({{lead, number, ">.\n"}, depths[i]});
    questions.push_back({fmt::format("What is the magic number of {}?", keys[i]), lead, {{number, ">.", i}}});
  }
  draw_questions(request, draws, questions);
  return assemble(request, haystack_filler(request, document, draws), needles, questions);
}

}  // namespace

TaskInfo multikey_task() {
  return {.name = "multikey",
          .measures = "whether the right one of several similar statements is found (multi-key needles of RULER)",
          .form =
              "`The magic number of amber is <12345>.` within the text file, with twice as many keys as questions; "
              "each question is the beginning of one statement",
          .exact_match = true,
          .several = true,
          .make = make_multikey};
}

}  // namespace kvbench::eval
