// SPDX-License-Identifier: Apache-2.0
// Tasks: documents that are generated from a text file and a seed. A document is a context, which is compressed, and
// scored tokens, which pass through the model after it. The tokens at the positions [begin, end) of a span are
// predicted from all tokens before them.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <kvbench/kernels/view.hpp>
#include <kvbench/trace/schema.hpp>

namespace kvbench::eval {

/// The token ids of a text, without tokens that the tokeniser adds at the beginning or end, and without control tokens.
/// Pieces of a document are tokenised separately, and never again after they are joined.
using Tokenizer = std::function<std::vector<int>(const std::string& text)>;

/// The texts that a chat template puts around the user's messages; each is tokenised by ChatTemplate::tokenize.
struct ChatTemplate {
  std::string before;   ///< from the beginning to the first user message
  std::string after;    ///< from the end of a user message to the beginning of the answer
  std::string between;  ///< from the end of an answer to the next user message
  Tokenizer tokenize;   ///< as Tokenizer, but control tokens are recognised
};

struct TaskRequest {
  Tokenizer tokenize;
  std::string haystack;       ///< UTF-8 text
  std::string haystack_name;  ///< for messages: the path of its file
  /// token ids that every context begins with, such as the BOS token of a model that needs it
  std::vector<int> prefix;
  std::uint32_t seed = 0;
  Index documents = 4;
  Index context_tokens = 4096;  ///< of every document, exactly
  Index score_tokens = 256;     ///< scored tokens of tasks without questions
  Index questions = 4;          ///< answers per document, for tasks that have several; see TaskInfo::form
  /// The context ends with the question, so that it is compressed together with it. Tasks that ask one question per
  /// answer then ask one.
  bool question_inside = false;
  std::optional<ChatTemplate> chat;  ///< absent: the raw form, for base models
};

/// Tokens [begin, end) of TaskDocument::scored.
struct ScoredSpan {
  Index begin = 0, end = 0;
  /// where the span's needle begins in the context, as a share of its tokens; NaN where there is no needle
  double depth = 0;
  Index needle = 0, needle_tokens = 0;  ///< the needle in the context; no tokens where there is none
  Index size() const { return end - begin; }
};

struct TaskDocument {
  std::string name;          ///< "passkey-0"
  std::vector<int> context;  ///< [context_tokens]
  /// The first tokens of the context that a shorter one needs too: the prefix, and what a chat has before the first
  /// message.
  Index beginning = 0;
  /// At most `most_scored_tokens`, at least 2. The first one is not predicted (its logits come from the last context
  /// token, which no method has compressed), so the logits at scored[i] predict scored[i + 1].
  std::vector<int> scored;
  /// What is predicted and counted: the answers, in order; one span over all predicted tokens for tasks without
  /// questions.
  std::vector<ScoredSpan> spans;
  /// Of a conversation (transcripts.hpp), whose scored tokens are any number: the turn of the first span, each further
  /// one of which is that of the next turn; 0: it is none.
  Index first_turn = 0;
  /// Tokens before each compression of its cache, ascending; the first ones are the context.
  std::vector<Index> compressed_at = {};
  /// Of a conversation: its messages before the last answer, as spans of context and scored tokens.
  std::vector<trace::Span> messages = {};
};
inline constexpr Index most_scored_tokens = 512;

/// The context of the short-context pass, which shows which tokens need the distant context: the beginning and the last
/// tokens of the context, `tokens` in total.
std::vector<int> short_context(const TaskDocument& document, Index tokens);
/// The same scored tokens behind a context of so many tokens, short_context(); their depths go. Throws Error if a
/// context of a task may not be that short, or the document's is shorter.
TaskDocument shortened(const TaskDocument& document, Index tokens);

struct TaskInfo {
  std::string name;
  std::string measures;      ///< one sentence: which ability of the compressed model the figures show
  std::string form;          ///< what a document looks like, with an example
  bool exact_match = false;  ///< spans are answers, whose exact match is meaningful
  bool several = false;      ///< a document has as many answers as TaskRequest::questions
  /// A context may lose its first tokens: no scored token asks for them, or copies them.
  bool shortens = false;
  bool json = false;  ///< free answers are judged by read_json_line(); documents are for free generation alone
  TaskDocument (*make)(const TaskRequest& request, Index document) = nullptr;
};

/// Every task, in the order of the table in tasks.cpp.
std::span<const TaskInfo> all_tasks();
/// Throws Error with the nearest known name.
const TaskInfo& find_task(std::string_view name);
/// The tasks with their descriptions, for --list-tasks.
std::string list_of_tasks();

/// The documents of a task: equal requests give equal documents. Throws Error with the remedy where a field is out of
/// range, the text is too short for this number of documents, the context is too small for what the task puts into it,
/// the scored tokens are too many, or a chat is requested of a task without questions.
std::vector<TaskDocument> make_documents(const TaskInfo& task, const TaskRequest& request);

}  // namespace kvbench::eval
