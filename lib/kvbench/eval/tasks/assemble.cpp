// SPDX-License-Identifier: Apache-2.0
#include <kvbench/eval/tasks/assemble.hpp>

#include <algorithm>
#include <cmath>

#include <kvbench/core/error.hpp>

namespace kvbench::eval {
namespace {

/// The tokens of the questions and answers: those that end the context, and the scored ones.
struct Asked {
  Tokens in_context, scored;
  std::vector<ScoredSpan> spans;  ///< depth: number of the needle
};

Tokens lead_tokens(const TaskRequest& request, const Question& question, bool first) {
  Tokens out;
  if (request.chat) {
    const ChatTemplate& chat = *request.chat;
    if (!first) append_tokens(out, chat.tokenize(chat.between));
    append_tokens(out, request.tokenize("\n" + question.ask));
    append_tokens(out, chat.tokenize(chat.after));
  } else {
    append_tokens(out, request.tokenize("\n"));
  }
  append_tokens(out, request.tokenize(question.lead));
  return out;
}

Asked ask(const TaskRequest& request, const std::vector<Question>& questions) {
  Asked out;
  for (const Question& question : questions) {
    append_tokens(out.scored, lead_tokens(request, question, &question == &questions.front()));
    if (request.question_inside && &question == &questions.front()) {
      out.in_context.assign(out.scored.begin(), out.scored.end() - 1);
      out.scored.erase(out.scored.begin(), out.scored.end() - 1);
    }
    for (const Reply& reply : question.replies) {
      const Index begin = std::ssize(out.scored);
      append_tokens(out.scored, request.tokenize(reply.answer));
      out.spans.push_back({begin, std::ssize(out.scored), reply.needle ? static_cast<double>(*reply.needle) : NAN});
      append_tokens(out.scored, request.tokenize(reply.after));
    }
  }
  out.scored.resize(static_cast<std::size_t>(out.spans.back().end));  // nothing follows the last answer
  return out;
}

Index room_for(const TaskRequest& request, Index taken, Index least) {
  const Index room = request.context_tokens - taken;
  if (room < least) {
    throw Error(
        "`context_tokens` {}: is too small for the task, which needs at least {}; give that many, or fewer `questions`",
        request.context_tokens, taken + least);
  }
  return room;
}

std::vector<Tokens> tokens_of(const TaskRequest& request, const std::vector<Needle>& needles) {
  std::vector<Tokens> out;
  for (const Needle& needle : needles) {
    Tokens tokens;
    for (const std::string& text : needle.texts) append_tokens(tokens, request.tokenize(text));
    out.push_back(std::move(tokens));
  }
  return out;
}

}  // namespace

Tokens beginning(const TaskRequest& request) {
  Tokens out = request.prefix;
  if (request.chat) append_tokens(out, request.chat->tokenize(request.chat->before));
  return out;
}

std::vector<double> spread_depths(const TaskRequest& request, Index document, std::size_t count, TaskDraws& draws) {
  std::vector<double> depths;
  for (std::size_t i = 0; i < count; ++i) {
    const double within = (static_cast<double>(document) + draws.uniform()) / static_cast<double>(request.documents);
    depths.push_back(deepest_needle * (static_cast<double>(i) + within) / static_cast<double>(count));
  }
  return depths;
}

void draw_questions(const TaskRequest& request, TaskDraws& draws, std::vector<Question>& questions) {
  draws.shuffle(questions);
  questions.resize(request.question_inside ? 1 : static_cast<std::size_t>(request.questions));
}

Filler haystack_filler(const TaskRequest& request, Index document, TaskDraws& draws) {
  return [&request, document, &draws](Index count) { return filler_lines(request, document, draws, count); };
}

TaskDocument assemble(const TaskRequest& request, const Filler& filler, const std::vector<Needle>& needles,
                      const std::vector<Question>& questions) {
  const Asked asked = ask(request, questions);
  const std::vector<Tokens> stated = tokens_of(request, needles);
  TaskDocument out{.name = "", .context = beginning(request), .scored = asked.scored, .spans = asked.spans};
  const Index around = std::ssize(out.context) + std::ssize(asked.in_context);
  Index of_needles = 0;
  for (const Tokens& tokens : stated) of_needles += std::ssize(tokens);
  const Index room = room_for(request, around + of_needles,
                              std::max(of_needles, Index{1}));  // the filler is not less than the needles

  std::vector<Index> begins(needles.size());
  std::size_t next = 0;
  Index filled = 0;
  const auto add_needles = [&](bool all) {
    for (; next < needles.size(); ++next) {
      if (!all && static_cast<double>(filled) < needles[next].depth * static_cast<double>(room)) return;
      begins[next] = std::ssize(out.context);
      append_tokens(out.context, stated[next]);
    }
  };
  for (const Tokens& line : filler(room)) {
    add_needles(false);
    append_tokens(out.context, line);
    filled += std::ssize(line);
  }
  add_needles(true);
  append_tokens(out.context, asked.in_context);
  for (ScoredSpan& span : out.spans) {
    if (std::isnan(span.depth)) continue;
    const auto needle = static_cast<std::size_t>(span.depth);
    span.needle = begins[needle], span.needle_tokens = std::ssize(stated[needle]);
    span.depth = static_cast<double>(span.needle) / static_cast<double>(request.context_tokens);
  }
  return out;
}

}  // namespace kvbench::eval
