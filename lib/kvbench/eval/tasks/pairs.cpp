// SPDX-License-Identifier: Apache-2.0
#include <kvbench/eval/tasks/rows.hpp>

#include <cmath>

#include <kvbench/core/error.hpp>
#include <kvbench/eval/tasks/task_text.hpp>

namespace kvbench::eval {
namespace {

/// Lines of two words with at least `count` tokens in total; no word occurs twice.
std::vector<Tokens> pair_lines(const TaskRequest& request, TaskDraws& draws, Index count) {
  const std::vector<std::string> words = shuffled_words(request, draws, 2);
  std::vector<Tokens> lines;
  Index total = 0;
  for (std::size_t i = 0; i + 1 < words.size() && total < count; i += 2) {
    lines.push_back(request.tokenize(words[i] + " " + words[i + 1] + "\n"));
    total += std::ssize(lines.back());
  }
  if (total < count) {
    throw Error(
        "{}: its {} different words of 3 to 10 Latin letters make pairs of {} tokens, of which the task needs {}; give "
        "a longer text or a shorter context",
        request.haystack_name, words.size(), total, count);
  }
  return lines;
}

TaskDocument make_pairs(const TaskRequest& request, Index document) {
  TaskDraws draws(request.seed, "pairs", document);
  const Index in_list = request.context_tokens - std::ssize(request.prefix);
  if (in_list < request.score_tokens + 16) {
    throw Error(
        "`context_tokens` {}: is too small for the task, which repeats its first `score_tokens` {}; give at least {}",
        request.context_tokens, request.score_tokens, request.score_tokens + 16 + std::ssize(request.prefix));
  }
  std::vector<Tokens> list = pair_lines(request, draws, in_list);
  cut_front(list, in_list);
  TaskDocument out{.name = "", .context = request.prefix, .spans = {{1, request.score_tokens, NAN}}};
  for (const Tokens& line : list) append_tokens(out.context, line);
  // The first line may be cut; the copy begins with the second one.
  for (std::size_t i = 1; i < list.size(); ++i) append_tokens(out.scored, list[i]);
  out.scored.resize(static_cast<std::size_t>(request.score_tokens));
  return out;
}

}  // namespace

TaskInfo pairs_task() {
  return {.name = "pairs",
          .measures =
              "whether the model can copy from far back: every scored token stands in the context once, about one "
              "context before",
          .form = "lines of two words (`amber river`) that fill the context; the scored tokens repeat its beginning",
          .exact_match = false,
          .make = make_pairs};
}

}  // namespace kvbench::eval
