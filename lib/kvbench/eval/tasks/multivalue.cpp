// SPDX-License-Identifier: Apache-2.0
#include <kvbench/eval/tasks/rows.hpp>

#include <fmt/format.h>

#include <kvbench/eval/tasks/assemble.hpp>

namespace kvbench::eval {
namespace {

TaskDocument make_multivalue(const TaskRequest& request, Index document) {
  TaskDraws draws(request.seed, "multivalue", document);
  const auto count = static_cast<std::size_t>(request.questions);
  const std::string key = shuffled_words(request, draws, 1).front();
  const std::vector<double> depths = spread_depths(request, document, count, draws);
  FreshTexts fresh(request, draws);
  std::vector<Needle> needles;
  Question question{fmt::format("What are all the magic numbers of {}, in the order of the text?", key),
                    fmt::format("The magic numbers of {}, in this order, are <", key),
                    {}};
  for (std::size_t i = 0; i < count; ++i) {
    const std::string number = fresh.number();
    needles.push_back({{fmt::format("One of the magic numbers of {} is <", key), number, ">.\n"}, depths[i]});
    question.replies.push_back({number, ">, <", i});
  }
  return assemble(request, haystack_filler(request, document, draws), needles, {question});
}

}  // namespace

TaskInfo multivalue_task() {
  return {
      .name = "multivalue",
      .measures = "whether all of several statements about one key are found, in order (multi-value needles of RULER)",
      .form =
          "`One of the magic numbers of amber is <12345>.` within the text file, several times with different numbers; "
          "the question is `The magic numbers of amber, in this order, are <`, and each number is an answer",
      .exact_match = true,
      .several = true,
      .make = make_multivalue};
}

}  // namespace kvbench::eval
