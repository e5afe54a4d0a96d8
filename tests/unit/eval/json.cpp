// SPDX-License-Identifier: Apache-2.0
// python/tests/json_test.py compares the reader with Python's on random mutations.
#include <kvbench/eval/json.hpp>

#include <string>

#include <doctest/doctest.h>

#include <kvbench/eval/eval_record.hpp>

using namespace kvbench;
using namespace kvbench::eval;

TEST_CASE("texts that are JSON, that are its beginning, and that are neither") {
  const std::string deep(1'000'000, '['), deep_end(1'000'000, ']');
  const auto check = [](Json expected, std::initializer_list<std::string> texts) {
    for (const std::string& text : texts) {
      CAPTURE(text.substr(0, 60));
      CHECK(name_of(read_json(text)) == name_of(expected));
    }
  };
  check(Json::valid,
        {"0", "-0", "-12.5e+07", "1E5", "1e999", "true", "false", "null", "\"\"", "[]", "{}", " \t\r\n[ ]\n ",
         "[1, [2, {}]]", R"({"a": 1, "a": {"b": [null, "x"]}})", R"("\"\\\/\b\f\n\r\t\u00e9\uD834\uDD1E")",
         R"("\ud800")", "\"\x7f\"", "\"\xC3\xA9 \xE2\x82\xAC \xF0\x9D\x84\x9E \xF4\x8F\xBF\xBF\"", deep + deep_end});
  check(Json::cut, {"",
                    " ",
                    "-",
                    "1.",
                    "1e",
                    "1e+",
                    "t",
                    "nul",
                    "\"",
                    "\"a",
                    "\"\\",
                    "\"\\u",
                    "\"\\u00e",
                    "[",
                    "[1",
                    "[1,",
                    "{",
                    "{\"a",
                    "{\"a\"",
                    "{\"a\":",
                    "{\"a\": 1",
                    "{\"a\": 1,",
                    "[[]",
                    "\"\xC3",
                    "\"\xE0",
                    "\"\xE0\xA0",
                    "\"\xED\x9F",
                    "\"\xF0\x90\x80",
                    "\"\xF4\x8F\xBF",
                    deep});
  check(Json::broken, {"01",
                       "-01",
                       "00",
                       "+1",
                       ".5",
                       "1.e5",
                       "1..2",
                       "1e5.0",
                       "--1",
                       "0x1",
                       "1 2",
                       "NaN",
                       "Infinity",
                       "-Infinity",
                       "True",
                       "nulll",
                       "truefalse",
                       "nul ",
                       "'a'",
                       "a",
                       "[1,]",
                       "[,1]",
                       "[1 2]",
                       "[1}",
                       "]",
                       "{]",
                       "{\"a\"}",
                       "{\"a\" 1}",
                       "{\"a\":}",
                       "{\"a\": 1,}",
                       "{a: 1}",
                       "{1: 1}",
                       "{,}",
                       "{\"a\": 1 \"b\"",
                       "[]]",
                       "{} {}",
                       "\"a\"b",
                       R"("\a")",
                       R"("\x41")",
                       R"("\u12g4")",
                       R"("\U0041")",
                       "\"\n\"",
                       "\"\x01\"",
                       "\"a\tb\"",
                       std::string("\"\0\"", 3),
                       "\xEF\xBB\xBF{}",
                       "\"\x80\"",
                       "\"\xFF",
                       "\"\xC0\xAF\"",
                       "\"\xC3\"",
                       "\"\xC3(",
                       "\"\xE0\x80",
                       "\"\xED\xA0",
                       "\"\xED\xA0\x80\"",
                       "\"\xF4\x90",
                       "\"\xF5",
                       "\xC2\xA0",
                       "// x\n1",
                       deep + "}"});
}

TEST_CASE("an answer is judged by the line that it continues") {
  CHECK(read_json_line("{\"a\": 1}", false) == Json::valid);
  CHECK(read_json_line("{\"a\": 1}\n{\"a\":", false) == Json::valid);
  CHECK(read_json_line("{\"a\": 1}\r\nrest", true) == Json::valid);
  CHECK(read_json_line("{\"a\": 1", false) == Json::cut);
  CHECK(read_json_line("{\"a\": 1", true) == Json::broken);     // the answer has ended by itself
  CHECK(read_json_line("{\"a\":\n1}", false) == Json::broken);  // a record is a line
  CHECK(read_json_line("{\"a\": 1} and", false) == Json::broken);
  CHECK(read_json_line("{\"a\": 01", false) == Json::broken);
}

namespace {

/// Documents whose lines are judged so, with the full cache and by each of three seeds.
EvalRecord row_of(const std::vector<std::pair<Json, std::vector<Json>>>& documents) {
  EvalResults results;
  results.tasks = {&find_task("json")};
  for (std::uint32_t seed = 0; seed < 3; ++seed)
    results.configurations.push_back({"random", "", Budget::parse("25%mem"), true, seed});
  for (const auto& [full, seeds] : documents) {
    EvalDocument& document = results.documents.emplace_back();
    document.document = {.name = "d", .scored = {1, 2}, .spans = {{1, 2, NAN}}};
    document.generate = 64, document.json = full;
    for (std::size_t seed = 0; seed < seeds.size(); ++seed) {
      PassResult& pass = results.passes.emplace_back();
      pass.configuration = seed, pass.document = results.documents.size() - 1;
      pass.tokens.resize(1), pass.answer = {1, 2}, pass.json = seeds[seed];
    }
  }
  return summarize(results, {}).front();
}

}  // namespace

TEST_CASE("a row has the shares of valid and cut lines, and a verdict over documents") {
  constexpr Json valid = Json::valid, cut = Json::cut, broken = Json::broken;
  // By the majority of the seeds: 6 valid with the full cache alone, 1 with the compressed one alone, 1 with both.
  std::vector<std::pair<Json, std::vector<Json>>> documents(6, {valid, {broken, cut, valid}});
  documents.push_back({broken, {valid, valid, cut}});
  documents.push_back({valid, {valid, valid, valid}});
  const EvalRecord row = row_of(documents);
  CHECK(row.of(damage("json_full")).mean == doctest::Approx(7.0 / 8));
  CHECK(row.of(damage("json")).mean == doctest::Approx(11.0 / 24));
  CHECK(row.of(damage("json_cut")).mean == doctest::Approx(7.0 / 24));
  CHECK(row.of(damage("json")).lo < 11.0 / 24);
  CHECK(row.json_p == doctest::Approx(9.0 / 128));  // 2 * (1 + 7 / 2) / 2^7: of 7 flips one or none, half of one
  CHECK(row.json_verdict == Difference::undecided);
  documents.pop_back(), documents.pop_back();
  CHECK(row_of(documents).json_verdict == Difference::worse);
  CHECK(row_of(std::vector(8, std::pair(broken, std::vector{valid}))).json_verdict == Difference::cannot_discriminate);
  const EvalRecord cuts = row_of({{cut, {valid}}, {cut, {cut}}, {broken, {cut}}, {valid, {valid}}});
  CHECK(cuts.verdict_reason ==
        "of the full cache's answers only 0.25 are valid JSON, and 0.5 have too few tokens to end");
  CHECK(row_of(std::vector(59, std::pair(valid, std::vector{valid}))).json_verdict == Difference::none);
  CHECK(row_of(std::vector(58, std::pair(valid, std::vector{valid}))).json_verdict == Difference::undecided);
}
