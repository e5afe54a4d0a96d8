// SPDX-License-Identifier: Apache-2.0
#include <kvbench/eval/tasks/rows.hpp>

#include <cmath>

#include <kvbench/eval/tasks/task_text.hpp>

namespace kvbench::eval {
namespace {

TaskDocument make_text(const TaskRequest& request, Index document) {
  TaskDraws draws(request.seed, "text", document);
  TaskDocument out{.name = "", .context = request.prefix, .spans = {{1, request.score_tokens, NAN}}};
  const Index from_text = request.context_tokens - std::ssize(request.prefix);
  const Tokens tokens = passage(request, document, draws, from_text + request.score_tokens);
  out.context.insert(out.context.end(), tokens.begin(), tokens.begin() + from_text);
  out.scored.assign(tokens.begin() + from_text, tokens.end());
  return out;
}

}  // namespace

TaskInfo text_task() {
  return {
      .name = "text",
      .measures =
          "how well the model continues ordinary text; most of its tokens need only the last few hundred before them",
      .form = "a passage of the text file: the context, and the tokens after it, which are scored",
      .exact_match = false,
      .shortens = true,
      .make = make_text};
}

}  // namespace kvbench::eval
