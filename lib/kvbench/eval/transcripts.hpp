// SPDX-License-Identifier: Apache-2.0
// Conversations, whose cache is compressed again and again: a turn is what is said to the model, and its answer.
#pragma once

#include <compare>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <kvbench/eval/tasks.hpp>

namespace kvbench::eval {

/// The content of a message: a text, or the ids of its tokens (text empty).
struct Content {
  std::string text;
  std::vector<int> ids;
  std::string span;  ///< what it is called: the field `span`, or else the role
};
/// The contents of one line of a file, and whether they are of the role `assistant`.
struct Conversation {
  std::string place;  ///< "talks.jsonl:3"
  std::vector<std::pair<Content, bool>> messages;
};
struct Turn {
  std::vector<Content> asked;  ///< messages before the answer, at least one
  Content answer;
};
using Transcript = std::vector<Turn>;

/// One conversation per line, as JSON: {"messages": [{"role": "user", "content": "..."}, ...]}, or the list alone. A
/// content is a text, or a list of token ids; a text `span` names a message. Other fields and empty lines are passed
/// over. Throws Error with file, line and message where a line is no such conversation, or a message is empty.
std::vector<Conversation> read_conversations(std::string_view text, const std::string& path);
/// The same by turns: roles other than `assistant` are said to the model. Throws Error also where two answers follow
/// each other, the last message is no answer, or there are fewer than two turns.
std::vector<Transcript> read_transcripts(std::string_view text, const std::string& path);

/// When a cache is compressed: at the end of the first turn, and then ...
struct Compressions {
  enum class When { once, turn, anew, tokens } when = When::turn;
  Index tokens = 0;  ///< When::tokens: between two compressions
  bool from_exact() const { return when == When::anew; }
  bool again() const { return when != When::once; }
  /// "once": never again. "turn": at the end of every turn, from what the cache holds. "anew": at the end of every
  /// turn, from the exact cache of all tokens. A number: after so many tokens. Throws Error.
  static Compressions parse(const std::string& text);
  std::string text() const;  ///< that parse() takes
  auto operator<=>(const Compressions&) const = default;
};

/// How a document is read. By default its context is exact, and compressed once.
struct EvalProtocol {
  bool stream = false;                            ///< the context passes through the compressed cache, too
  std::optional<Compressions> compressions = {};  ///< of conversations
  /// Column `protocol`: "decode", "stream", "compress turn", "compress 256".
  std::string text() const;
  /// Throws Error.
  static EvalProtocol parse(const std::string& text);
  auto operator<=>(const EvalProtocol&) const = default;
};

/// The token ids of a turn, and its messages, the last of which is the answer: their tokens in the turn.
struct TurnTokens {
  std::vector<int> asked, answer;
  std::vector<trace::Span> messages = {};
};
/// A document whose context is what is compressed first. `before`: ids before the first turn. `question_inside`: a
/// turn's compression comes before its answer, so that the question is known, and not behind it. The last token of a
/// question is always read by the compressed cache, so that the answer's first token is predicted by it. Throws Error
/// with `name` where the first context would have fewer than two tokens.
TaskDocument transcript_document(const std::string& name, const std::vector<int>& before,
                                 const std::vector<TurnTokens>& turns, const Compressions& compressions,
                                 bool question_inside);

}  // namespace kvbench::eval
