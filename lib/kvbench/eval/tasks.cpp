// SPDX-License-Identifier: Apache-2.0
#include <kvbench/eval/tasks.hpp>

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include <kvbench/core/error.hpp>
#include <kvbench/core/name.hpp>
#include <kvbench/eval/tasks/assemble.hpp>
#include <kvbench/eval/tasks/rows.hpp>

namespace kvbench::eval {
namespace {

constexpr Index least_context = 32, most_questions = 32, most_documents = 100'000;

void require_range(const char* field, Index value, Index least, Index most) {
  if (value < least || value > most) throw Error("`{}` {}: must be from {} to {}", field, value, least, most);
}

std::vector<std::string> tasks_with_questions() {
  std::vector<std::string> names;
  for (const TaskInfo& task : all_tasks()) {
    if (task.exact_match) names.push_back(task.name);
  }
  return names;
}

}  // namespace

std::span<const TaskInfo> all_tasks() {
  // clang-format off
  static const std::vector<TaskInfo> table = {
      text_task(),
      passkey_task(),
      pairs_task(),
      lines_task(),
      multikey_task(),
      confusable_task(),
      multivalue_task(),
      tracking_task(),
      common_words_task(),
      rules_task(),
      json_task(),
  };
  // clang-format on
  return table;
}

const TaskInfo& find_task(std::string_view name) {
  std::vector<std::string> known;
  for (const TaskInfo& task : all_tasks()) {
    if (task.name == name) return task;
    known.push_back(task.name);
  }
  throw Error("there is no task '{}'.{} The tasks are: {}", name, did_you_mean(name, known), listed(known));
}

std::string list_of_tasks() {
  std::string out;
  for (const TaskInfo& task : all_tasks()) {
    out += fmt::format("{}\n  Measures {}.\n  Form: {}.\n", task.name, task.measures, task.form);
  }
  return out;
}

std::vector<TaskDocument> make_documents(const TaskInfo& task, const TaskRequest& request) {
  require_range("documents", request.documents, 1, most_documents);
  require_range("context_tokens", request.context_tokens, least_context + std::ssize(request.prefix), Index{1} << 30);
  require_range("score_tokens", request.score_tokens, 2, most_scored_tokens);
  require_range("questions", request.questions, 1, most_questions);
  if (request.chat && !task.exact_match) {
    throw Error("`chat`: task {} has no questions, and so no form as a chat; leave `chat` out, or choose among {}",
                task.name, listed(tasks_with_questions()));
  }
  std::vector<TaskDocument> out;
  for (Index d = 0; d < request.documents; ++d) {
    out.push_back(task.make(request, d));
    out.back().name = fmt::format("{}-{}", task.name, d);
    out.back().beginning = std::ssize(beginning(request));
    if (std::ssize(out.back().scored) > most_scored_tokens) {
      throw Error("`questions` {}: task {} would score {} tokens, more than {}; ask fewer questions", request.questions,
                  task.name, out.back().scored.size(), most_scored_tokens);
    }
  }
  return out;
}

std::vector<int> short_context(const TaskDocument& document, Index tokens) {
  std::vector<int> out(document.context.begin(), document.context.begin() + document.beginning);
  const Index last = std::clamp(tokens - std::ssize(out), Index{0}, std::ssize(document.context) - std::ssize(out));
  out.insert(out.end(), document.context.end() - last, document.context.end());
  return out;
}

TaskDocument shortened(const TaskDocument& document, Index tokens) {
  require_range("context_tokens", tokens, least_context + document.beginning, std::ssize(document.context));
  TaskDocument out = document;
  out.context = short_context(document, tokens);
  for (ScoredSpan& span : out.spans) span.depth = NAN;
  return out;
}

}  // namespace kvbench::eval
