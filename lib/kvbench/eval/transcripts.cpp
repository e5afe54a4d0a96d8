// SPDX-License-Identifier: Apache-2.0
#include <kvbench/eval/transcripts.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <optional>
#include <utility>

#include <fmt/ranges.h>

#include <kvbench/core/error.hpp>
#include <kvbench/core/utf8.hpp>

namespace kvbench::eval {
namespace {

/// A value of JSON. Literals and numbers that are no whole ones have no content here.
struct JsonValue {
  enum class Kind { other, whole, text, list, object } kind = Kind::other;
  long whole = 0;
  std::string text;
  std::vector<JsonValue> items;    ///< of a list, and the values of an object
  std::vector<std::string> names;  ///< of an object

  const JsonValue* find(std::string_view name) const {
    const auto found = std::ranges::find(names, name);
    return found == names.end() ? nullptr : &items[static_cast<std::size_t>(found - names.begin())];
  }
};

void add_utf8(unsigned code, std::string& out) {
  const auto add = [&](unsigned byte) { out += static_cast<char>(byte); };
  const auto rest = [&](unsigned shift) { add(0x80U | (code >> shift & 0x3fU)); };
  if (code < 0x80) return add(code);
  if (code < 0x800) return add(0xc0U | code >> 6U), rest(0);
  if (code < 0x10000) return add(0xe0U | code >> 12U), rest(6), rest(0);
  add(0xf0U | code >> 18U), rest(12), rest(6), rest(0);
}

/// Reads one line of JSON. The text is UTF-8.
class JsonReader {
 public:
  JsonReader(std::string_view line, std::string place) : line_(line), place_(std::move(place)) {}

  JsonValue whole_line() {
    JsonValue out = value(0);
    skip_space();
    if (at_ < line_.size()) fail("the end of the line");
    return out;
  }

 private:
  [[noreturn]] void fail(const char* expected) const {
    throw Error("{}: column {}: no JSON, {} was expected; give one conversation per line, as JSON", place_, at_ + 1,
                expected);
  }
  char peek() const { return at_ < line_.size() ? line_[at_] : '\0'; }
  void skip_space() {
    while (at_ < line_.size() && std::string_view(" \t\r\n").find(line_[at_]) != std::string_view::npos) ++at_;
  }
  bool takes(char wanted) {
    skip_space();
    if (peek() != wanted) return false;
    ++at_;
    return true;
  }
  void need(char wanted, const char* what) {
    if (!takes(wanted)) fail(what);
  }

  JsonValue value(int depth) {
    if (depth > 64) fail("less nesting");
    skip_space();
    if (peek() == '"') return {.kind = JsonValue::Kind::text, .text = string()};
    if (takes('[')) return list(depth);
    if (takes('{')) return object(depth);
    return literal();
  }

  JsonValue list(int depth) {
    JsonValue out{.kind = JsonValue::Kind::list};
    if (takes(']')) return out;
    do {
      out.items.push_back(value(depth + 1));
    } while (takes(','));
    need(']', "',' or ']'");
    return out;
  }

  JsonValue object(int depth) {
    JsonValue out{.kind = JsonValue::Kind::object};
    if (takes('}')) return out;
    do {
      skip_space();
      out.names.push_back(string());
      need(':', "':'");
      out.items.push_back(value(depth + 1));
    } while (takes(','));
    need('}', "',' or '}'");
    return out;
  }

  JsonValue literal() {
    const auto end = std::min(line_.find_first_of(" \t\r\n,]}:", at_), line_.size());
    const std::string_view word = line_.substr(at_, end - at_);
    JsonValue out;
    const auto [stop, error] = std::from_chars(word.data(), word.data() + word.size(), out.whole);
    if (error == std::errc() && stop == word.data() + word.size()) {
      out.kind = JsonValue::Kind::whole;
    } else if (double number = 0; word != "true" && word != "false" && word != "null") {
      const auto [last, fault] = std::from_chars(word.data(), word.data() + word.size(), number);
      if (fault != std::errc() || last != word.data() + word.size() || !std::isfinite(number)) fail("a value");
    }
    at_ = end;
    return out;
  }

  unsigned hex4() {
    unsigned code = 0;
    const char* const begin = line_.data() + at_;
    const char* const end = begin + std::min<std::size_t>(4, line_.size() - at_);
    const auto [stop, error] = std::from_chars(begin, end, code, 16);
    if (error != std::errc() || stop != begin + 4) fail("four hexadecimal digits");
    at_ += 4;
    return code;
  }

  void add_escape(std::string& out) {
    constexpr std::string_view names = "\"\\/bfnrt", characters = "\"\\/\b\f\n\r\t";
    const char name = peek();
    ++at_;
    if (const auto known = names.find(name); known != names.npos) {
      out += characters[known];
      return;
    }
    if (name != 'u') fail("an escape");
    unsigned code = hex4();
    if (code >= 0xd800 && code < 0xdc00) {  // the first half of a pair
      if (line_.substr(at_, 2) != "\\u") fail("the second half of a surrogate pair");
      at_ += 2;
      const unsigned low = hex4();
      if (low < 0xdc00 || low >= 0xe000) fail("the second half of a surrogate pair");
      code = 0x10000 + ((code - 0xd800) << 10U) + (low - 0xdc00);
    } else if (code >= 0xdc00 && code < 0xe000) {
      fail("the first half of a surrogate pair");
    }
    add_utf8(code, out);
  }

  std::string string() {
    need('"', "'\"'");
    std::string out;
    while (peek() != '"') {
      if (at_ >= line_.size() || static_cast<unsigned char>(peek()) < 0x20) fail("'\"'");
      const char next = line_[at_++];
      if (next == '\\')
        add_escape(out);
      else
        out += next;
    }
    ++at_;
    return out;
  }

  std::string_view line_;
  std::string place_;
  std::size_t at_ = 0;
};

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

Transcript transcript_of(const JsonValue& line, const std::string& place) {
  const JsonValue* const messages = line.kind == JsonValue::Kind::object ? line.find("messages") : &line;
  if (messages == nullptr || messages->kind != JsonValue::Kind::list)
    throw Error("{}: it has no list \"messages\", such as [{{\"role\": \"user\", \"content\": \"Hello\"}}, ...]",
                place);
  Transcript out;
  std::vector<Content> asked;
  for (std::size_t m = 0; m < messages->items.size(); ++m) {
    const std::string here = fmt::format("{}, message {}", place, m + 1);
    const JsonValue* const role = messages->items[m].find("role");
    if (role == nullptr || role->kind != JsonValue::Kind::text)
      throw Error("{}: it has no \"role\" that is a text", here);
    if (std::ranges::find(roles, role->text) == std::end(roles))  // a misspelt answer would count as a question
      throw Error("{}: its role is '{}'; choose among {}", here, printable(role->text), fmt::join(roles, ", "));
    Content content = content_of(messages->items[m], here);
    if (role->text != "assistant") {
      asked.push_back(std::move(content));
      continue;
    }
    if (asked.empty()) throw Error("{}: an answer of the assistant without a question before it", here);
    out.push_back({std::exchange(asked, {}), std::move(content)});
  }
  if (!asked.empty())
    throw Error("{}: the last message has no answer; let each conversation end with the assistant", place);
  if (out.size() < 2)
    throw Error("{}: a cache that is compressed again needs at least two turns, and it has {}", place, out.size());
  return out;
}

}  // namespace

std::vector<Transcript> read_transcripts(std::string_view text, const std::string& path) {
  std::vector<Transcript> out;
  for (std::size_t begin = 0, number = 1; begin < text.size(); ++number) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    begin = end + 1;
    if (line.find_first_not_of(" \t\r") == line.npos) continue;
    const std::string place = fmt::format("{}:{}", path, number);
    out.push_back(transcript_of(JsonReader(line, place).whole_line(), place));
  }
  if (out.empty()) throw Error("{}: there is no conversation in it", path);
  return out;
}

Compressions Compressions::parse(const std::string& text) {
  if (text == "once") return {.when = When::once};
  if (text == "turn") return {.when = When::turn};
  if (text == "anew") return {.when = When::anew};
  Compressions out{.when = When::tokens};
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), out.tokens);
  if (error != std::errc() || stop != text.data() + text.size() || out.tokens < 1)
    throw Error("--compress '{}': give once, turn, anew, or the number of tokens between two compressions", text);
  return out;
}

std::string Compressions::text() const {
  switch (when) {
    case When::once:
      return "compress once";
    case When::turn:
      return "compress turn";
    case When::anew:
      return "compress anew";
    case When::tokens:
      break;
  }
  return fmt::format("compress {}", tokens);
}

TaskDocument transcript_document(const std::string& name, const std::vector<int>& before,
                                 const std::vector<TurnTokens>& turns, const Compressions& compressions,
                                 bool question_inside) {
  std::vector<int> tokens = before;
  std::vector<Index> points;
  std::vector<std::pair<Index, Index>> answers;
  for (const TurnTokens& turn : turns) {
    tokens.insert(tokens.end(), turn.asked.begin(), turn.asked.end());
    answers.emplace_back(std::ssize(tokens), std::ssize(tokens) + std::ssize(turn.answer));
    tokens.insert(tokens.end(), turn.answer.begin(), turn.answer.end());
    points.push_back(question_inside ? answers.back().first - 1 : answers.back().second);
  }
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
                   .compressed_at = points};
  for (const auto& [from, to] : answers) out.spans.push_back({from - first, to - first, NAN});
  return out;
}

}  // namespace kvbench::eval
