// SPDX-License-Identifier: Apache-2.0
#include <kvbench/eval/tasks/rows.hpp>

#include <numeric>

#include <fmt/format.h>

#include <kvbench/eval/tasks/assemble.hpp>

namespace kvbench::eval {
namespace {

constexpr std::size_t digits = 3;           // of a key: of five, small models do not find all
constexpr std::size_t neighbours = digits;  // of an asked key

/// An asked key, and behind it keys that differ from it in one digit, each in another place.
std::vector<std::string> key_and_neighbours(FreshTexts& fresh) {
  std::vector<std::string> keys = {fresh.number(digits)};
  for (std::size_t place = 0; place < digits; ++place) keys.push_back(fresh.number_beside(keys.front(), place));
  return keys;
}

TaskDocument make_confusable(const TaskRequest& request, Index document) {
  TaskDraws draws(request.seed, "confusable", document);
  const auto asked = static_cast<std::size_t>(request.questions), count = asked * (1 + neighbours);
  FreshTexts fresh(request, draws);
  std::vector<std::string> keys;
  for (std::size_t i = 0; i < asked; ++i) {
    const std::vector<std::string> more = key_and_neighbours(fresh);
    keys.insert(keys.end(), more.begin(), more.end());
  }
  const std::vector<double> depths = spread_depths(request, document, count, draws);
  std::vector<std::size_t> places(count);  // of the keys among the needles
  std::iota(places.begin(), places.end(), std::size_t{0});
  draws.shuffle(places);
  std::vector<Needle> needles(count);
  std::vector<Question> questions;
  for (std::size_t i = 0; i < count; ++i) {
    const std::string lead = fmt::format("The number of box {} is <", keys[i]), number = fresh.number();
    needles[places[i]] = {{lead, number, ">.\n"}, depths[places[i]]};
    if (i % (1 + neighbours) == 0)
      questions.push_back({fmt::format("What is the number of box {}?", keys[i]), lead, {{number, ">.", places[i]}}});
  }
  draw_questions(request, draws, questions);
  return assemble(request, haystack_filler(request, document, draws), needles, questions);
}

}  // namespace

TaskInfo confusable_task() {
  return {.name = "confusable",
          .measures =
              "whether keys that are nearly equal are told apart, which rounding or merging of keys may lose (the keys "
              "of `lines` and `multikey` are different words)",
          .form =
              "`The number of box 482 is <12345>.` within the text file, and for each question three more boxes, "
              "whose keys differ from the asked one in one digit, each in another place; each question is the "
              "beginning of one statement",
          .exact_match = true,
          .several = true,
          .make = make_confusable};
}

}  // namespace kvbench::eval
