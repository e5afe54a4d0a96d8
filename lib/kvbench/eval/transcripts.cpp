// SPDX-License-Identifier: Apache-2.0
#include <kvbench/eval/transcripts.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <utility>

#include <fmt/ranges.h>

#include <kvbench/core/enumeration.hpp>
#include <kvbench/core/error.hpp>
#include <kvbench/core/utf8.hpp>
#include <kvbench/eval/json.hpp>
#include <kvbench/trace/layout.hpp>

namespace kvbench::eval {
namespace {

Content content_of(const JsonValue& message, const std::string& place) {
  const JsonValue* const content = message.find("content");
  Content out;
  if (content != nullptr && content->kind == JsonValue::Kind::text) {
    out.text = content->text;
  } else if (content != nullptr && content->kind == JsonValue::Kind::list &&
             std::ranges::all_of(content->items, [](const JsonValue& id) {
               return id.kind == JsonValue::Kind::whole && id.whole >= 0 && id.whole < INT32_MAX;
             })) {
    for (const JsonValue& id : content->items) out.ids.push_back(static_cast<int>(id.whole));
  } else {
    throw Error("{}: it has no \"content\" that is a text or a list of token ids", place);
  }
  if (out.text.empty() && out.ids.empty()) throw Error("{}: it is empty; leave the turn out", place);
  return out;
}

constexpr std::string_view roles[] = {"system", "developer", "user", "tool", "function", "assistant"};

std::pair<Content, bool> message_of(const JsonValue& message, const std::string& place) {
  const JsonValue *const role = message.find("role"), *const span = message.find("span");
  if (role == nullptr || role->kind != JsonValue::Kind::text)
    throw Error("{}: it has no \"role\" that is a text", place);
  if (std::ranges::find(roles, role->text) == std::end(roles))  // a misspelt answer would count as a question
    throw Error("{}: its role is '{}'; choose among {}", place, printable(role->text), fmt::join(roles, ", "));
  if (span != nullptr && span->kind != JsonValue::Kind::text) throw Error("{}: its \"span\" is no text", place);
  Content content = content_of(message, place);
  content.span = (span == nullptr ? role : span)->text;
  if (!trace::may_name_a_span(content.span))
    throw Error("{}: the name '{}' of a span has not 1 to {} bytes, or a comma", place, printable(content.span),
                trace::longest_span_name);
  return {std::move(content), role->text == "assistant"};
}

/// "talks.jsonl:3, message 1"
std::string place_of(const Conversation& of, std::size_t message) {
  return fmt::format("{}, message {}", of.place, message + 1);
}

Conversation conversation_of(const JsonValue& line, const std::string& place) {
  const JsonValue* const messages = line.kind == JsonValue::Kind::object ? line.find("messages") : &line;
  if (messages == nullptr || messages->kind != JsonValue::Kind::list)
    throw Error("{}: it has no list \"messages\", such as [{{\"role\": \"user\", \"content\": \"Hello\"}}, ...]",
                place);
  Conversation out{.place = place, .messages = {}};
  for (const JsonValue& message : messages->items)
    out.messages.push_back(message_of(message, place_of(out, out.messages.size())));
  return out;
}

Transcript transcript_of(const Conversation& conversation) {
  Transcript out;
  std::vector<Content> asked;
  for (std::size_t m = 0; m < conversation.messages.size(); ++m) {
    const auto& [content, is_answer] = conversation.messages[m];
    if (!is_answer) {
      asked.push_back(content);
      continue;
    }
    if (asked.empty())
      throw Error("{}: an answer of the assistant without a question before it", place_of(conversation, m));
    out.push_back({std::exchange(asked, {}), content});
  }
  if (!asked.empty())
    throw Error("{}: the last message has no answer; let each conversation end with the assistant", conversation.place);
  if (out.size() < 2)
    throw Error("{}: a cache that is compressed again needs at least two turns, and it has {}", conversation.place,
                out.size());
  return out;
}

}  // namespace

std::vector<Conversation> read_conversations(std::string_view text, const std::string& path) {
  std::vector<Conversation> out;
  for (std::size_t begin = 0, number = 1; begin < text.size(); ++number) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    begin = end + 1;
    if (line.find_first_not_of(" \t\r") == line.npos) continue;
    const std::string place = fmt::format("{}:{}", path, number);
    out.push_back(conversation_of(json_value_of(line, place, "give one conversation per line, as JSON"), place));
  }
  if (out.empty()) throw Error("{}: there is no conversation in it", path);
  return out;
}

std::vector<Transcript> read_transcripts(std::string_view text, const std::string& path) {
  std::vector<Transcript> out;
  for (const Conversation& conversation : read_conversations(text, path)) out.push_back(transcript_of(conversation));
  return out;
}

Compressions Compressions::parse(const std::string& text) {
  for (const When when : {When::once, When::turn, When::anew})
    if (Compressions{.when = when}.text() == text) return {.when = when};
  Compressions out{.when = When::tokens};
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), out.tokens);
  if (error != std::errc() || stop != text.data() + text.size() || out.tokens < 1)
    throw Error("--compress '{}': give once, turn, anew, or the number of tokens between two compressions", text);
  return out;
}

std::string Compressions::text() const {
  constexpr std::string_view names[] = {"once", "turn", "anew", "tokens"};
  return when == When::tokens ? std::to_string(tokens) : std::string(name_in(names, when));
}

std::string EvalProtocol::text() const {
  return compressions ? "compress " + compressions->text() : stream ? "stream" : "decode";
}

EvalProtocol EvalProtocol::parse(const std::string& text) {
  constexpr std::string_view compress = "compress ";
  if (text.starts_with(compress)) return {.compressions = Compressions::parse(text.substr(compress.size()))};
  for (const EvalProtocol& one : {EvalProtocol{}, EvalProtocol{.stream = true}})
    if (one.text() == text) return one;
  throw Error("there is no protocol '{}'", text);
}

TaskDocument transcript_document(const std::string& name, const std::vector<int>& before,
                                 const std::vector<TurnTokens>& turns, const Compressions& compressions,
                                 bool question_inside) {
  std::vector<int> tokens = before;
  std::vector<Index> points;
  std::vector<std::pair<Index, Index>> answers;
  std::vector<trace::Span> messages;
  for (const TurnTokens& turn : turns) {
    for (const auto& [span, from, to] : turn.messages)
      messages.push_back({span, from + std::ssize(tokens), to + std::ssize(tokens)});
    tokens.insert(tokens.end(), turn.asked.begin(), turn.asked.end());
    answers.emplace_back(std::ssize(tokens), std::ssize(tokens) + std::ssize(turn.answer));
    tokens.insert(tokens.end(), turn.answer.begin(), turn.answer.end());
    points.push_back(question_inside ? answers.back().first - 1 : answers.back().second);
  }
  if (!messages.empty()) messages.pop_back();  // the last answer, behind which nothing is said
  if (!question_inside) points.pop_back(), answers.erase(answers.begin());
  const Index first = points.front();
  if (first < 2) throw Error("{}: the first turn has too few tokens to be compressed", name);
  if (compressions.when == Compressions::When::once) points = {first};
  if (compressions.when == Compressions::When::tokens) {
    points.clear();
    for (Index at = first; at < std::ssize(tokens); at += compressions.tokens) points.push_back(at);
  }
  const auto begin = tokens.begin() + first;
  TaskDocument out{.name = name,
                   .context = {tokens.begin(), begin},
                   .beginning = std::ssize(before),
                   .scored = {begin, tokens.end()},
                   .spans = {},
                   .first_turn = question_inside ? 1 : 2,
                   .compressed_at = points,
                   .messages = std::move(messages)};
  for (const auto& [from, to] : answers) out.spans.push_back({from - first, to - first, NAN});
  return out;
}

}  // namespace kvbench::eval
