// SPDX-License-Identifier: Apache-2.0
#include <kvbench/eval/tasks.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <set>

#include <doctest/doctest.h>

#include <kvbench/core/error.hpp>
#include <kvbench/eval/json.hpp>
#include <kvbench/eval/results.hpp>
#include <support/messages.hpp>
#include <unit/eval/word_tokenizer.hpp>

using namespace kvbench;
using namespace kvbench::eval;
using namespace kvbench::eval_test;
using namespace kvbench::testing;

namespace {

struct Setup {
  WordTokenizer tokenizer;
  TaskRequest request{.tokenize = tokenizer,
                      .haystack = made_text(3000),
                      .haystack_name = "book.txt",
                      .prefix = tokenizer("BOS"),
                      .seed = 1,
                      .documents = 3,
                      .context_tokens = 900,
                      .score_tokens = 64,
                      .questions = 3,
                      .chat = {}};

  std::vector<TaskDocument> documents(std::string_view task) const { return make_documents(find_task(task), request); }
  std::string context(const TaskDocument& document) const { return tokenizer.text(document.context); }
  std::string scored(const TaskDocument& document) const { return tokenizer.text(document.scored); }
  std::string answer(const TaskDocument& document, const ScoredSpan& span) const {
    return tokenizer.text(std::span(document.scored)
                              .subspan(static_cast<std::size_t>(span.begin), static_cast<std::size_t>(span.size())));
  }
};

int occurrences(const std::string& text, const std::string& part) {
  int count = 0;
  for (std::size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++count;
  return count;
}

/// What stands in the context behind each place at which a part occurs, up to a character.
std::vector<std::string> behind(const std::string& context, const std::string& part, char end) {
  std::vector<std::string> out;
  for (std::size_t at = context.find(part); at != context.npos; at = context.find(part, at + 1)) {
    const std::size_t begin = at + part.size();
    out.push_back(context.substr(begin, context.find(end, begin) - begin));
  }
  return out;
}

/// Digits at which two numbers of as many digits differ.
Index distance(const std::string& a, const std::string& b) {
  REQUIRE(a.size() == b.size());
  return std::inner_product(a.begin(), a.end(), b.begin(), Index{0}, std::plus<>(), std::not_equal_to<>());
}

}  // namespace

TEST_CASE("every task makes documents of exactly the requested length, with spans behind the first scored token") {
  const Setup s;
  for (const TaskInfo& task : all_tasks()) {
    CAPTURE(task.name);
    const std::vector<TaskDocument> documents = make_documents(task, s.request);
    REQUIRE(documents.size() == 3);
    for (std::size_t d = 0; d < documents.size(); ++d) {
      const TaskDocument& document = documents[d];
      CHECK(document.name == task.name + "-" + std::to_string(d));
      CHECK(document.context.size() == 900);
      CHECK(s.context(document).starts_with("BOS"));
      CHECK(document.scored.size() >= 2);
      REQUIRE(!document.spans.empty());
      for (const ScoredSpan& span : document.spans) {
        CHECK(span.begin >= 1);
        CHECK(span.begin < span.end);
        CHECK(span.end <= std::ssize(document.scored));
      }
    }
  }
}

TEST_CASE("equal seeds give equal documents; documents and seeds differ") {
  Setup s;
  for (const TaskInfo& task : all_tasks()) {
    CAPTURE(task.name);
    const std::vector<TaskDocument> first = make_documents(task, s.request), again = make_documents(task, s.request);
    std::set<std::vector<int>> different;
    for (std::size_t d = 0; d < first.size(); ++d) {
      CHECK(first[d].context == again[d].context);
      CHECK(first[d].scored == again[d].scored);
      different.insert(first[d].context);
    }
    CHECK(different.size() == first.size());
    TaskRequest other = s.request;
    other.seed = 2;
    CHECK(make_documents(task, other)[0].context != first[0].context);
  }
}

TEST_CASE("text: the scored tokens continue the context in the file, and documents do not overlap") {
  const Setup s;
  std::vector<std::size_t> begins;
  for (const TaskDocument& document : s.documents("text")) {
    const std::string text = (s.context(document) + s.scored(document)).substr(3);  // without BOS
    begins.push_back(s.request.haystack.find(text));
    REQUIRE(begins.back() != std::string::npos);
    CHECK(document.spans.front().begin == 1);
    CHECK(document.spans.front().end == 64);
    if (begins.size() > 1) CHECK(begins[begins.size() - 2] + text.size() < begins.back());
  }
}

TEST_CASE("pairs: the scored tokens repeat the first whole lines of the context") {
  const Setup s;
  for (const TaskDocument& document : s.documents("pairs")) {
    const std::string copy = s.scored(document), context = s.context(document);
    CHECK(occurrences(context, copy) == 1);
    CHECK(context.find(copy) < 40);
    CHECK(document.scored.size() == 64);
  }
}

TEST_CASE("passkey: the statement has the key twice, at the stated depth; the question ends right before the key") {
  const Setup s;
  std::vector<double> depths;
  for (const TaskDocument& document : s.documents("passkey")) {
    REQUIRE(document.spans.size() == 1);
    const ScoredSpan& span = document.spans.front();
    const std::string key = s.answer(document, span), context = s.context(document);
    CHECK(key.size() == 5);
    CHECK(occurrences(context, key) == 2);
    CHECK(occurrences(context, "The pass key is <" + key + ">. Remember it: <" + key + "> is the pass key.\n") == 1);
    CHECK(s.scored(document) == "\nThe pass key is <" + key);
    const auto begin = static_cast<std::size_t>(std::llround(span.depth * 900));
    const std::string from_depth = s.tokenizer.text(std::span(document.context).subspan(begin));
    CHECK(from_depth.starts_with("The pass key is <" + key));
    CHECK(span.depth < 0.95);
    depths.push_back(span.depth);
  }
  CHECK(std::ranges::is_sorted(depths));
  CHECK(depths.back() - depths.front() > 0.3);
}

TEST_CASE("needles: every answer occurs once in the context, at its depth, behind the words of its question") {
  const Setup s;
  for (const char* task : {"multikey", "multivalue", "lines"}) {
    CAPTURE(task);
    for (const TaskDocument& document : s.documents(task)) {
      REQUIRE(document.spans.size() == 3);
      const std::string context = s.context(document), scored = s.scored(document);
      for (const ScoredSpan& span : document.spans) {
        const std::string number = s.answer(document, span);
        CHECK(occurrences(context, number) == 1);
        CHECK(occurrences(scored, number) == 1);
        const auto begin = static_cast<std::size_t>(std::llround(span.depth * 900));
        const std::string needle = s.tokenizer.text(std::span(document.context).subspan(begin, 40));
        CHECK(needle.find(number) < needle.find('\n'));
        CHECK(span.needle == static_cast<Index>(begin));
        const std::string stated =
            s.tokenizer.text(std::span(document.context).subspan(begin, static_cast<std::size_t>(span.needle_tokens)));
        CHECK(stated.find(number) != stated.npos);
        CHECK(stated.find('\n') == stated.size() - 1);
      }
    }
  }
  const TaskDocument one = s.documents("multikey")[0];
  CHECK(occurrences(s.context(one), "The magic number of ") == 6);
  CHECK(occurrences(s.scored(one), "The magic number of ") == 3);
  const std::string question = s.scored(one).substr(1, s.scored(one).find('<'));
  CHECK(occurrences(s.context(one), question + s.answer(one, one.spans[0])) == 1);
}

TEST_CASE("lines: nothing but lines of different keys") {
  const Setup s;
  const std::string context = s.context(s.documents("lines")[0]);
  std::set<std::string> names;
  for (std::size_t at = context.find("\nline "); at != context.npos; at = context.find("\nline ", at + 1)) {
    CHECK(names.insert(context.substr(at, context.find(':', at) - at)).second);
  }
  CHECK(names.size() > 40);
}

TEST_CASE("tracking: each variable is assigned once, after the one that it copies") {
  const Setup s;
  for (const TaskDocument& document : s.documents("tracking")) {
    REQUIRE(document.spans.size() == 3);
    const std::string context = s.context(document), scored = s.scored(document);
    std::string previous;
    std::size_t behind = 0;
    for (const ScoredSpan& span : document.spans) {
      const std::string name = s.answer(document, span);
      const std::string statement = "VAR <" + name + (previous.empty() ? "> = " : "> = VAR <" + previous + ">\n");
      CHECK(occurrences(context, "VAR <" + name + "> = ") == 1);
      REQUIRE(context.find(statement) != context.npos);
      CHECK(context.find(statement) >= behind);
      behind = context.find(statement);
      previous = name;
    }
    const std::string value =
        context.substr(context.find("> = ", context.find(s.answer(document, document.spans[0]))) + 4, 5);
    CHECK(occurrences(scored, "The variables with the value " + value) == 1);
    CHECK(occurrences(context, "VAR <") == 6 + 4);  // two chains of three; two of each refer to another variable
  }
}

TEST_CASE("rules: they begin the context, each sign has one, and each answer is that of equally many") {
  Setup s;
  std::map<std::string, Index> asked;
  for (s.request.seed = 1; s.request.seed <= 8; ++s.request.seed) {
    s.request.questions = s.request.seed % 2 == 0 ? 4 : 3;
    for (const TaskDocument& document : s.documents("rules")) {
      const std::string context = s.context(document), scored = s.scored(document);
      CHECK(context.starts_with("BOSWhen the sign is "));
      std::map<std::string, Index> counts;
      std::set<std::string> signs;
      for (const std::string& rule : behind(context, "When the sign is ", '.')) {
        CHECK(signs.insert(rule.substr(0, rule.find(','))).second);
        ++counts[rule.substr(rule.find('<'))];
      }
      CHECK(signs.size() == (s.request.questions == 4 ? 8 : 6));
      CHECK(counts.size() == 4);
      for (const auto& [answer, count] : counts) CHECK((count == 2 || (count == 1 && s.request.questions == 3)));
      const std::size_t last = context.rfind("When the sign is ");
      CHECK(last < 500);  // behind it only the text, which the question follows
      std::set<std::string> different;
      for (const ScoredSpan& span : document.spans) {
        const std::string answer = s.answer(document, span),
                          question = behind(scored, "sign is ", '<').at(different.size());
        CHECK(different.insert(question).second);
        CHECK(occurrences(context, "When the sign is " + question + "<" + answer + ">.\n") == 1);
        CHECK(span.depth < 0.2);
        ++asked[answer];
      }
    }
  }
  // 84 answers; each of the four is expected 21 times, with a standard deviation below 4.
  CHECK(asked.size() == 4);
  for (const auto& [answer, count] : asked) CHECK(std::abs(count - 21) <= 12);
}

TEST_CASE("json: the context is lines of JSON with the same keys, and ends with the beginning of one") {
  Setup s;
  s.request.prefix.clear();
  for (const TaskDocument& document : s.documents("json")) {
    std::string lines = s.context(document) + s.scored(document);
    lines.erase(0, lines.find('\n') + 1);  // the first one is cut
    const std::string lead = s.context(document).substr(s.context(document).rfind('\n') + 1);
    CHECK(lead.starts_with("{\""));
    CHECK(lead.ends_with("\": \""));
    std::set<std::string> different, keys;
    for (std::size_t end = 0; (end = lines.find('\n')) != lines.npos; lines.erase(0, end + 1)) {
      const std::string line = lines.substr(0, end);
      CAPTURE(line);
      CHECK(read_json(line) == Json::valid);
      CHECK(line.starts_with(lead));
      different.insert(line);
      std::string names;  // what stands before a colon
      for (std::size_t colon = 0; (colon = line.find("\":", colon + 1)) != line.npos;)
        names += line.substr(line.rfind('"', colon - 1), colon - line.rfind('"', colon - 1));
      keys.insert(names);
    }
    CHECK(different.size() > 8);
    CHECK(keys.size() == 1);
    CHECK(read_json(lines) == Json::cut);  // the last one
  }
  s.request.context_tokens = 60, s.request.documents = 1;
  const std::string message = message_of<Error>([&] { s.documents("json"); });
  CAPTURE(message);
  REQUIRE(message.find("give at least ") != message.npos);
  s.request.context_tokens = std::stoll(message.substr(message.find("at least ") + 9));
  CHECK_NOTHROW(make_documents(find_task("json"), s.request));
}

TEST_CASE("confusable: each asked key has a neighbour in each digit, and each key one number") {
  Setup s;
  s.request.context_tokens = 1200;
  for (s.request.seed = 1; s.request.seed <= 4; ++s.request.seed) {
    for (const TaskDocument& document : s.documents("confusable")) {
      const std::string context = s.context(document), scored = s.scored(document);
      const std::vector<std::string> keys = behind(context, "The number of box ", ' '),
                                     asked = behind(scored, "The number of box ", ' ');
      CHECK(std::set(keys.begin(), keys.end()).size() == 12);
      REQUIRE(asked.size() == 3);
      for (std::size_t i = 0; i < asked.size(); ++i) {
        const std::string number = s.answer(document, document.spans[i]);
        CHECK(occurrences(context, "The number of box " + asked[i] + " is <" + number + ">.\n") == 1);
        CHECK(occurrences(context, number) == 1);
        std::array<int, 3> near{};  // keys that differ in this digit alone
        for (const std::string& key : keys) {
          CHECK(key.size() == 3);
          CHECK(key[0] != '0');
          if (distance(key, asked[i]) == 1)
            ++near.at(static_cast<std::size_t>(std::ranges::mismatch(key, asked[i]).in1 - key.begin()));
        }
        for (const int count : near) CHECK(count >= 1);
      }
    }
  }
}

TEST_CASE("rules and confusable: the whole text of a document") {
  Setup s;
  const std::string line = "amber river stone cloud\n";
  for (int i = 0; i < 64; ++i) s.request.haystack = (i == 0 ? "" : s.request.haystack) + line;
  s.request.prefix.clear();
  s.request.documents = s.request.questions = 1;
  s.request.context_tokens = 146;
  const TaskDocument rules = s.documents("rules")[0];
  CHECK(s.context(rules) ==
        "When the sign is stone, the answer is <east>.\n"
        "When the sign is amber, the answer is <west>.\n"
        "When the sign is cloud, the answer is <south>.\n"
        "When the sign is river, the answer is <north>.\n"
        "cloud\n" +
            line + line + line + line + line + line + line + line + line);
  CHECK(s.scored(rules) == "\nWhen the sign is river, the answer is <north");
  s.request.context_tokens = 196;
  const TaskDocument confusable = s.documents("confusable")[0];
  CHECK(s.context(confusable) == "stone cloud\n" + line + "The number of box 671 is <94169>.\n" + line + line + line +
                                     line + "The number of box 201 is <75338>.\n" + line + line + line +
                                     "The number of box 271 is <24856>.\n" + line + line + line +
                                     "The number of box 272 is <15000>.\n" + line + line + line);
  CHECK(s.scored(confusable) == "\nThe number of box 271 is <24856");
}

TEST_CASE("common-words: the answers are the most frequent words, in alphabetic order") {
  const Setup s;
  for (const TaskDocument& document : s.documents("common-words")) {
    const std::string context = s.context(document);
    std::string last;
    int least = 1000;
    for (const ScoredSpan& span : document.spans) {
      const std::string word = s.answer(document, span);
      CHECK(last < word);
      last = word;
      least = std::min(least, occurrences(context, "<" + word + ">\n"));
    }
    CHECK(least > 20);
    std::map<std::string, int> counts;
    for (std::size_t at = context.find('<'); at != context.npos; at = context.find('<', at + 1))
      ++counts[context.substr(at, context.find('>', at) - at)];
    CHECK(std::ranges::count_if(counts, [](const auto& word) { return word.second > 3; }) == 3);
  }
}

TEST_CASE("a question inside ends the context with all but its last token") {
  Setup s;
  s.request.question_inside = true;
  for (const char* task : {"passkey", "multikey", "confusable", "lines", "rules"}) {
    CAPTURE(task);
    const TaskDocument document = s.documents(task)[0];
    REQUIRE(document.spans.size() == 1);
    CHECK(document.context.size() == 900);
    CHECK(document.spans[0].begin == 1);
    CHECK(document.spans[0].end == std::ssize(document.scored));
    CHECK(s.context(document).ends_with("is"));
    CHECK(s.scored(document).starts_with(" <"));
  }
  CHECK(s.documents("multivalue")[0].spans.size() == 3);
}

TEST_CASE("a chat has the haystack in the user's message, and the beginning of the answer after it") {
  Setup s;
  s.request.chat = ChatTemplate{"[user]", "[model]", "[end][user]", s.tokenizer};
  const TaskDocument document = s.documents("multikey")[0];
  CHECK(s.context(document).starts_with("BOS[user]"));
  const std::string scored = s.scored(document);
  CHECK(scored.starts_with("\nWhat is the magic number of "));
  CHECK(occurrences(scored, "[model]The magic number of ") == 3);
  CHECK(occurrences(scored, "[end][user]\nWhat is") == 2);
  CHECK(s.tokenizer.text(short_context(document, 90)).starts_with("BOS[user]"));
  CHECK_THROWS_WITH_AS(s.documents("pairs"), doctest::Contains("`chat`: task pairs has no questions"), Error);
}

TEST_CASE("pieces are tokenised once: the tokens of an answer are those of its needle") {
  const Setup s;
  const TaskDocument document = s.documents("passkey")[0];
  const auto answer = std::span(document.scored).subspan(static_cast<std::size_t>(document.spans[0].begin) - 1);
  const auto& context = document.context;
  CHECK(std::search(context.begin(), context.end(), answer.begin(), answer.end()) != context.end());
}

TEST_CASE("the short context is the prefix and the end of the context") {
  const Setup s;
  const TaskDocument document = s.documents("passkey")[0];
  const std::vector<int> tokens = short_context(document, 101);
  REQUIRE(tokens.size() == 101);
  CHECK(tokens[0] == s.request.prefix[0]);
  CHECK(std::equal(tokens.begin() + 1, tokens.end(), document.context.end() - 100));
  CHECK(short_context(document, 5000) == document.context);
}

TEST_CASE("a shortened document has the same scored tokens behind the end of its context") {
  const Setup s;
  const TaskDocument document = s.documents("text")[1], brief = shortened(document, 101);
  CHECK(brief.context == short_context(document, 101));
  CHECK((brief.scored == document.scored && brief.name == document.name && brief.beginning == 1));
  CHECK(digest_of_scored(brief) == digest_of_scored(document));
  CHECK(digest_of_scored(brief) != digest_of_scored(s.documents("text")[0]));
  CHECK(shortened(document, 900).context == document.context);
  CHECK_THROWS_WITH_AS(shortened(document, 32), "`context_tokens` 32: must be from 33 to 900", Error);
  CHECK_THROWS_WITH_AS(shortened(document, 901), "`context_tokens` 901: must be from 33 to 900", Error);
  for (const TaskInfo& task : all_tasks()) CHECK(!(task.shortens && task.exact_match));
}

TEST_CASE("errors name the field or the file, and the remedy") {
  Setup s;
  CHECK_THROWS_WITH_AS(find_task("paskey"), doctest::Contains("Did you mean 'passkey'?"), Error);
  s.request.context_tokens = 40;
  CHECK_THROWS_WITH_AS(s.documents("multikey"),
                       doctest::Contains("`context_tokens` 40: is too small for the task, which needs at least"),
                       Error);
  CHECK_THROWS_WITH_AS(s.documents("pairs"), doctest::Contains("repeats its first"), Error);
  s.request.context_tokens = 900, s.request.questions = 0;
  CHECK_THROWS_WITH_AS(s.documents("text"), "`questions` 0: must be from 1 to 32", Error);
  s.request.questions = 32, s.request.context_tokens = 10'000;
  CHECK_THROWS_WITH_AS(s.documents("multikey"), doctest::Contains("ask fewer questions"), Error);
  s.request.questions = 3, s.request.context_tokens = 900;
  for (const TaskInfo& task : all_tasks()) {
    CAPTURE(task.name);
    if (task.name == "common-words" || task.name == "lines" || task.json) continue;  // few words make long lists
    s.request.haystack = made_text(9);
    CHECK_THROWS_WITH_AS(s.documents(task.name), doctest::Contains("longer text"), Error);
  }
  s.request.haystack.clear();
  for (const char* task : {"common-words", "lines", "json"})
    CHECK_THROWS_WITH_AS(s.documents(task), doctest::Contains("book.txt: has 0 different words"), Error);
}

TEST_CASE("confusable: a text that contains every key is refused") {
  Setup s;
  s.request.context_tokens = 1200;
  for (int number = 100; number < 1000; ++number) s.request.haystack += std::to_string(number) + "\n";
  CHECK_THROWS_WITH_AS(s.documents("confusable"),
                       doctest::Contains("book.txt: contains nearly all numbers or letters that could serve as keys"),
                       Error);
}

TEST_CASE("a text of one long line is split at spaces and between characters") {
  Setup s;
  std::ranges::replace(s.request.haystack, '\n', ' ');
  CHECK(s.documents("passkey")[2].context.size() == 900);
  std::string euros;
  for (int i = 0; i < 20'000; ++i) euros += "\u20ac";
  std::set<std::size_t> broken;
  s.request.haystack = euros;
  s.request.tokenize = [&](const std::string& text) {
    if (text.size() > 200 && text.size() % 3 != 0) broken.insert(text.size());
    return std::vector<int>(text.size() / 3 + 1, 7);
  };
  CHECK(s.documents("passkey")[1].context.size() == 900);
  CHECK(broken.empty());
}

TEST_CASE("the list of tasks describes every task") {
  for (const TaskInfo& task : all_tasks()) {
    CHECK(list_of_tasks().find(task.name + "\n  Measures " + task.measures) != std::string::npos);
    CHECK(!task.measures.ends_with('.'));
    CHECK(!task.form.ends_with('.'));
  }
}
