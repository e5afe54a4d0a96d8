// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/text/sentences.hpp>

#include <doctest/doctest.h>

using namespace kvbench::evidence;
using namespace kvbench::report;

namespace {

Mark mark(std::string name, double mean, std::optional<bool> tied, std::string over = "8 blocks of queries") {
  return {.name = std::move(name), .mean = mean, .tied = tied, .tested_over = std::move(over)};
}

/// With a ratio that was tested over places, from half to twice of it.
Mark over_places(std::string name, double ratio, bool tied, std::string over = "5 texts") {
  Mark out = mark(std::move(name), ratio, tied, std::move(over));
  out.ratio = ratio, out.interval = {ratio / 2, ratio * 2};
  return out;
}

const StandingWords words{.at = "At 64 tokens", .best = "0.1", .figures = "0.1, of many", .needs = "It takes more."};

std::string said(std::vector<Mark> others, const StandingWords& of = words) {
  others.insert(others.begin(), mark("a", 0.1, true, ""));
  return standing_sentence(standing_of(std::move(others), 0), of);
}

}  // namespace

TEST_CASE("the best, what cannot be told from it, and the next, with what the tests hold for") {
  CHECK(said({mark("c", 0.5, false), mark("b", 0.125, true)}) ==
        "At 64 tokens, a has the lowest error of the 3 methods run (0.1, of many); b (0.125) cannot be told from it; "
        "the next is c with 5 times the error. Tested over 8 blocks of queries, for the replayed layers and texts "
        "alone.");
  CHECK(said({over_places("c", 3, false), over_places("b", 1.5, true)}) ==
        "At 64 tokens, a has the lowest error of the 3 methods run (0.1, of many); b (1.5 times) cannot be told from "
        "it; the next is c with 3 times the error (adjusted 95 % interval 1.5 to 6). Tested over 5 texts.");
  CHECK(said({over_places("c", 3, false, "10 of 30 layers")})
            .ends_with(" 10 of 30 layers, for the replayed texts alone."));
  CHECK(said({over_places("c", 3, false, "10 of 30 layers and 3 texts")}).ends_with(" 10 of 30 layers and 3 texts."));
  CHECK(said({over_places("c", 3, false, "4 texts")})
            .ends_with(" over 4 texts, which leave much undecided; five texts or more decide most."));
}

TEST_CASE("names are in the order of their numbers, also where a larger ratio is tied and a smaller one is not") {
  struct Row {
    std::vector<Mark> others;
    std::string_view says;
  };
  const Row rows[] = {
      {{over_places("d", 2.02, true), over_places("b", 1.2, true), over_places("c", 1.8, false)},
       "; b (1.2 times), d (2.02 times) cannot be told from it; c, with 1.8 times the error (adjusted 95 % interval "
       "0.9 "
       "to 3.6), can. "},
      {{mark("d", 0.202, true), mark("c", 0.18, false)},
       "; d (0.202) cannot be told from it; c, with 1.8 times the error, can. "},
      {{over_places("d", 1.8, true), over_places("c", 1.8, false)}, "; the next is c with 1.8 times the error "},
      {{over_places("e", 4, false), over_places("c", 1.8, false)}, "; the next is c with 1.8 times the error "},
  };
  for (const Row& row : rows) {
    const std::string sentence = said(row.others);
    CAPTURE(sentence);
    CHECK(sentence.find(row.says) != std::string::npos);
  }
}

TEST_CASE("where nothing is told from the best, none is named") {
  CHECK(said({over_places("b", 1.5, true)}) ==
        "At 64 tokens, this trace cannot tell which method has the lowest error: a (0.1), b (1.5 times). Tested over 5 "
        "texts.");
  CHECK(said({mark("b", 0.2, std::nullopt)}) ==
        "At 64 tokens, this trace cannot tell which method has the lowest error: a (0.1), b (0.2).");
  StandingWords damage = words;
  damage.is_best = "changes the output least", damage.unit = "KL ", damage.rows = "3 documents";
  damage.best = "KL 0.1";
  CHECK(said({mark("b", 0.2, true, "3 documents")}, damage) ==
        "At 64 tokens, 3 documents cannot tell which method changes the output least: a (KL 0.1), b (KL 0.2). Tested "
        "over 3 documents.");
}

TEST_CASE("an error of 0 has no ratio, and a method that nothing was compared with is not the best of several") {
  const Standing zero = standing_of({mark("a", 0, true), mark("b", 0.5, false)}, 0);
  CHECK(standing_sentence(zero, words).find("; the next is b (0.5).") != std::string::npos);
  CHECK(said({}) == "At 64 tokens, a has the lowest error (0.1, of many).");
}

TEST_CASE("what was not tested, and what a test takes") {
  const auto note = [](std::vector<Mark> group) { return untested_sentence(standing_of(std::move(group), 0), words); };
  CHECK(note({mark("a", 0.1, true), mark("b", 0.2, false)}).empty());
  CHECK(note({mark("a", 0.1, true), mark("b", 0.2, std::nullopt)}) == "Nothing was tested. It takes more.");
  CHECK(note({mark("a", 0.1, true), mark("b", 0.2, false), mark("c", 0.3, std::nullopt)}) ==
        "Not tested against it: c (0.3). It takes more.");
}

TEST_CASE("of many names eight are written out") {
  std::vector<Mark> many;
  for (int i = 0; i < 30; ++i) many.push_back(mark("m", 1 + i, true));
  CHECK(said(many).find("m (7) and 23 more") != std::string::npos);
}
