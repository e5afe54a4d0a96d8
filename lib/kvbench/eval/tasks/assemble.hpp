// SPDX-License-Identifier: Apache-2.0
// Joins the parts of a document. Every text is tokenised by itself, so that equal texts have equal tokens wherever they
// stand.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <kvbench/eval/tasks/task_text.hpp>

namespace kvbench::eval {

/// Largest depth of a needle: later ones would lie within the short context.
inline constexpr double deepest_needle = 0.9;

/// A statement in the context.
struct Needle {
  std::vector<std::string> texts;
  double depth = 0;  ///< where it should begin, as a share of the tokens around needles
};

struct Reply {
  std::string answer, after;
  std::optional<std::size_t> needle;  ///< that states it
};

struct Question {
  std::string ask;   ///< as the user words it in a chat
  std::string lead;  ///< what the answer continues; the raw form begins with it
  std::vector<Reply> replies;
};

/// Evenly spread depths of the needles of a document: needle i of `count` lies in the i-th part of [0, deepest_needle),
/// at a place that moves on from document to document.
std::vector<double> spread_depths(const TaskRequest& request, Index document, std::size_t count, TaskDraws& draws);

/// Keeps those that a document asks, drawn from all: as many as requested, or one inside the context.
void draw_questions(const TaskRequest& request, TaskDraws& draws, std::vector<Question>& questions);

/// Makes the lines that fill a context, `count` tokens in total.
using Filler = std::function<std::vector<Tokens>(Index count)>;
/// Lines of the document's part of the haystack.
Filler haystack_filler(const TaskRequest& request, Index document, TaskDraws& draws);

/// What every context begins with: the prefix, and in a chat the text before the first message.
Tokens beginning(const TaskRequest& request);

/// A context of exactly `context_tokens`: the filler, with each needle at the first line boundary at or after its depth
/// (ascending), and where the question is inside all but the last token of what precedes the first answer. Then the
/// questions with their answers.
TaskDocument assemble(const TaskRequest& request, const Filler& filler, const std::vector<Needle>& needles,
                      const std::vector<Question>& questions);

}  // namespace kvbench::eval
