// SPDX-License-Identifier: Apache-2.0
#include <kvbench/eval/transcripts.hpp>

#include <doctest/doctest.h>

#include <kvbench/core/error.hpp>
#include <kvbench/eval/results.hpp>

using namespace kvbench;
using namespace kvbench::eval;

namespace {

const std::string user = R"({"role": "user", "content": "Hi"})", answer = R"({"role": "assistant", "content": "Yes"})";

std::vector<Transcript> read(const std::string& text) { return read_transcripts(text, "t.jsonl"); }

std::string why_not(const std::string& text) {
  try {
    read(text);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

/// The message of a conversation whose first messages are these.
std::string why_not_of(const std::string& messages) { return why_not("\n[" + messages + "]"); }

bool has(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

/// Turns of 3 + 2, 1 + 4 and 2 + 2 tokens behind one token.
TaskDocument document(const std::string& when, bool inside) {
  return transcript_document("t", {9}, {{{1, 1, 1}, {2, 2}}, {{3}, {4, 4, 4, 4}}, {{5, 5}, {6, 6}}},
                             Compressions::parse(when), inside);
}

}  // namespace

TEST_CASE("a line is a conversation: messages up to an answer are a turn") {
  const auto all = read("[" + user + "," + answer + R"(, {"content": [7, 0], "role": "tool"}, )" + user + "," + answer +
                        "]\r\n\n" + R"({"id": -1.5e3, "tags": [true, null, {}], "messages": [)" + user + "," + answer +
                        "," + user + "," + answer + "]}");
  REQUIRE(all.size() == 2);
  REQUIRE((all[0].size() == 2 && all[1].size() == 2));
  CHECK((all[0][0].asked.size() == 1 && all[0][0].asked[0].text == "Hi" && all[0][0].answer.text == "Yes"));
  REQUIRE(all[0][1].asked.size() == 2);
  CHECK((all[0][1].asked[0].ids == std::vector<int>{7, 0} && all[0][1].asked[0].text.empty()));
}

TEST_CASE("escapes of texts") {
  const std::string escaped = R"({"role": "user", "content": "\"\\\/\b\f\n\r\t\u0041\u00e9\u20ac\ud83d\ude00"})";
  const auto all = read("[" + escaped + "," + answer + "," + user + "," + answer + "]");
  CHECK(all[0][0].asked[0].text == "\"\\/\b\f\n\r\tA\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
  for (const char* wrong : {R"("\x")", R"("\u12")", R"("\ud83d")", R"("\ude00")", "\"\t\"", "\"open", "nul", "01x",
                            "[1", "{\"a\"}", "[1] 2", "\xe2"})
    CHECK_MESSAGE(has(why_not(wrong), "t.jsonl:1: column "), wrong);
  CHECK(has(why_not(std::string(100, '[')), "less nesting"));
}

TEST_CASE("what is no conversation is refused by line and message") {
  CHECK(has(why_not(" \n"), "t.jsonl: there is no conversation"));
  CHECK(has(why_not("{}"), "t.jsonl:1: it has no list \"messages\""));
  CHECK(has(why_not("3"), "no list \"messages\""));
  CHECK(has(why_not_of(""), "t.jsonl:2: a cache that is compressed again needs at least two turns, and it has 0"));
  CHECK(has(why_not_of(user + "," + answer), "at least two turns, and it has 1"));
  CHECK(has(why_not_of(answer), "message 1: an answer of the assistant without a question"));
  CHECK(has(why_not_of(user + "," + answer + "," + answer), "message 3: an answer of the assistant without"));
  CHECK(has(why_not_of(user), "the last message has no answer"));
  CHECK(has(why_not_of("{\"content\": \"a\"}"), "message 1: it has no \"role\""));
  CHECK(has(why_not_of(R"({"role": "asistant", "content": "a"})"), "its role is 'asistant'; choose among system, "));
  for (const char* content : {"3", "[1.5]", "[-1]", "[99999999999]", "null"})
    CHECK(has(why_not_of(R"({"role": "user", "content": )" + std::string(content) + "}"), "it has no \"content\""));
  CHECK(has(why_not_of(R"({"role": "user", "span": "a, b", "content": "x"})"), "message 1: the name 'a, b' of a span"));
  for (const char* content : {"\"\"", "[]"})
    CHECK(has(why_not_of(R"({"role": "user", "content": )" + std::string(content) + "}"), "it is empty"));
}

TEST_CASE("when a cache is compressed, and what is scored, by hand") {
  // Turns end after tokens 6, 11 and 15; answers begin at 4, 7 and 13.
  const TaskDocument outside = document("turn", false);
  CHECK((outside.context == std::vector<int>{9, 1, 1, 1, 2, 2} && outside.beginning == 1));
  CHECK((outside.scored == std::vector<int>{3, 4, 4, 4, 4, 5, 5, 6, 6} && outside.first_turn == 2));
  CHECK(outside.compressed_at == std::vector<Index>{6, 11});
  REQUIRE(outside.spans.size() == 2);
  CHECK((outside.spans[0].begin == 1 && outside.spans[0].end == 5 && outside.spans[1].begin == 7));
  // The last token of each question is read by the compressed cache.
  const TaskDocument inside = document("anew", true);
  CHECK((inside.compressed_at == std::vector<Index>{3, 6, 12} && inside.first_turn == 1));
  REQUIRE(inside.spans.size() == 3);
  CHECK((inside.spans[0].begin == 1 && inside.spans[0].end == 3 && inside.spans[2].end == 12));
  CHECK(document("once", false).compressed_at == std::vector<Index>{6});
  CHECK(document("4", false).compressed_at == std::vector<Index>{6, 10, 14});
  CHECK(outside.messages.empty());
  for (const char* text : {"decode", "stream", "compress once", "compress turn", "compress anew", "compress 4"})
    CHECK(EvalProtocol::parse(text).text() == text);
  for (const char* wrong : {"", "0", "-3", "4x", "each", "99999999999999999999"})
    CHECK_THROWS_AS(EvalProtocol::parse("compress " + std::string(wrong)), Error);
  CHECK_THROWS_AS(EvalProtocol::parse(""), Error);
  CHECK_THROWS_AS(transcript_document("t", {}, {{{1}, {2}}, {{1}, {2}}}, {}, true), Error);
}

TEST_CASE("messages are spans of the whole conversation, but for the last answer") {
  const std::vector<TurnTokens> turns = {{{1, 1, 1}, {2, 2}, {{"system", 0, 1}, {"user", 1, 3}, {"assistant", 3, 5}}},
                                         {{3}, {4, 4}, {{"user", 0, 1}, {"assistant", 1, 3}}}};
  const std::vector<trace::Span> expected = {{"system", 1, 2}, {"user", 2, 4}, {"assistant", 4, 6}, {"user", 6, 7}};
  for (const bool inside : {false, true})
    CHECK(transcript_document("t", {9}, turns, Compressions::parse("turn"), inside).messages == expected);
}

TEST_CASE("figures of a turn are those of its span") {
  EvalDocument of{.document = document("turn", false)};
  PassResult pass;
  pass.tokens.resize(8);
  for (std::size_t i = 0; i < 8; ++i) pass.tokens[i].kl = static_cast<double>(i);
  const TaskInfo& text = find_task("text");
  CHECK(sums_of(text, of, pass, 2).kl == 0 + 1 + 2 + 3);
  CHECK(sums_of(text, of, pass, 3).kl == 6 + 7);
  CHECK(sums_of(text, of, pass).kl == 6 + 13);
  CHECK(divergences_of(of, pass, 3) == std::vector<double>{6, 7});
  for (const Index none : {1, 4}) CHECK(spans_of(of.document, none).empty());
}
