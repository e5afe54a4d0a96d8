// SPDX-License-Identifier: Apache-2.0
#include <kvbench/eval/tasks/rows.hpp>

#include <fmt/format.h>

#include <kvbench/eval/tasks/assemble.hpp>

namespace kvbench::eval {
namespace {

/// Variables that get their value from each other: VAR A = 12345, VAR B = VAR A, ...
struct Chain {
  std::string value;
  std::vector<std::string> names;
  std::vector<std::string> statement(std::size_t i) const {
    if (i == 0) return {"VAR <", names[0], fmt::format("> = {}\n", value)};
    return {"VAR <", names[i], "> = VAR <", names[i - 1], ">\n"};
  }
};

Chain make_chain(FreshTexts& fresh, std::size_t length) {
  Chain chain{fresh.number(), {}};
  for (std::size_t i = 0; i < length; ++i) chain.names.push_back(fresh.variable());
  return chain;
}

TaskDocument make_tracking(const TaskRequest& request, Index document) {
  TaskDraws draws(request.seed, "tracking", document);
  const auto count = static_cast<std::size_t>(request.questions);
  const std::vector<double> depths = spread_depths(request, document, 2 * count, draws);
  FreshTexts fresh(request, draws);
  const Chain asked = make_chain(fresh, count), other = make_chain(fresh, count);
  Question question{fmt::format("Which variables have the value {}, in the order of the text?", asked.value),
                    fmt::format("The variables with the value {}, in this order, are <", asked.value),
                    {}};
  std::vector<Needle> needles;
  for (std::size_t i = 0; i < count; ++i) {
    question.replies.push_back({asked.names[i], ">, <", needles.size()});
    needles.push_back({asked.statement(i), depths[2 * i]});
    needles.push_back({other.statement(i), depths[2 * i + 1]});
  }
  return assemble(request, haystack_filler(request, document, draws), needles, {question});
}

}  // namespace

TaskInfo tracking_task() {
  return {.name = "tracking",
          .measures = "whether statements that refer to each other can be followed (variable tracking of RULER)",
          .form =
              "`VAR <ABCDE> = 12345`, `VAR <FGHIJ> = VAR <ABCDE>`, ... within the text file, and a second chain of "
              "variables; the question is `The variables with the value 12345, in this order, are <`, and each "
              "variable is an answer",
          .exact_match = true,
          .several = true,
          .make = make_tracking};
}

}  // namespace kvbench::eval
