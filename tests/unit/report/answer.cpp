// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/replay/answer.hpp>

#include <kvbench/report/replay/ranked_figure.hpp>

#include <doctest/doctest.h>
#include <fmt/format.h>

using namespace kvbench;
using namespace kvbench::replay;
using namespace kvbench::report;

namespace {

Record row(std::string method, std::string_view budget, double error, double held, std::optional<bool> tied = false) {
  Record r{};
  r.method = std::move(method);
  r.budget = Budget::parse(budget);
  r.bytes = {.kv = held, .meta = 0, .fast = held, .slow = 0, .read = held / 2, .full = 100};
  r.metrics.fill({error, error, error, error, error, error, error, error});
  r.tied = tied;
  return r;
}

/// As mark_best() leaves a row: its ratio to the best, and the units of the test.
Record marked(Record r, std::string best, double ratio, std::string over) {
  r.best = std::move(best);
  r.ratio_best = ratio, r.ratio_best_interval = {ratio / 2, ratio * 2};
  r.tested_over = std::move(over);
  return r;
}

using Answers = std::vector<std::string>;

/// "a: b | next | untested | elsewhere": the names in the standing of the first answer.
std::string standing(std::span<const Record> rows, std::size_t answer = 0) {
  const evidence::Standing s = budget_answers(rows).at(answer).standing;
  std::string out = s.best.name + ":";
  for (const auto* list : {&s.tied, &s.worse, &s.untested, &s.elsewhere}) {
    if (list != &s.tied) out += " |";
    for (const evidence::Mark& mark : *list) out += " " + mark.name;
  }
  return out;
}

}  // namespace

TEST_CASE("the best method, those not distinguishable from it, and the others; references have no place") {
  const Record rows[] = {row("far", "25%mem", 0.5, 24.8), row("b", "25%mem", 0.125, 25, true),
                         row("a", "25%mem", 0.1, 25, true), row("next", "25%mem", 0.14, 25),
                         row("exact", "25%mem", 1e-8, 25)};
  CHECK(standing(rows) == "a: b | next far | |");
  const Answers said = answers_of(rows);
  REQUIRE(said.size() == 1);
  CHECK(said[0].starts_with("At 25 % of the memory, a has the lowest error of the 4 methods run (0.1); b "));
}

TEST_CASE("each budget has an answer, in order of appearance; a single row has none") {
  const Record rows[] = {row("a", "64", 0.1, 25), row("a", "12.5%read", 0.2, 25), row("b", "64", 0.2, 25),
                         row("b", "12.5%read", 0.1, 25), row("a", "10%fast", 0.1, 25)};
  CHECK(budget_answers(rows).size() == 2);
  CHECK(standing(rows) == "a: | b | |");
  CHECK(standing(rows, 1) == "b: | a | |");
  CHECK(answers_of(rows).at(1).starts_with("Reading 12.5 % of the bytes, b has"));
}

TEST_CASE("rows that do not cost the same are reported with the cheapest and the most expensive") {
  const Record tokens[] = {row("a", "25%", 0.1, 111), row("b", "25%", 0.2, 23)};
  CHECK(answers_of(tokens).at(1) ==
        "These rows do not cost the same: they hold from 0.23 (b) to 1.11 (a) of the full cache; compare equal memory "
        "with --budget 25%mem, and methods that keep everything with --budget 25%read.");
  const Record half[] = {row("a", "50%", 0.1, 60), row("b", "50%", 0.2, 23)};
  CHECK(answers_of(half).at(1).ends_with("; compare equal memory with --budget 50%mem."));
  const Record retrieval[] = {row("a", "12.5%", 0.1, 100), row("b", "12.5%", 0.2, 123)};
  CHECK(answers_of(retrieval).at(1).ends_with("; compare equal reads with --budget 12.5%read."));
  Record some[] = {row("a", "64", 0.1, 60), row("b", "64", 0.2, 23)};
  for (Record& r : some) r.context_tokens = 1024, r.budget_tokens = 64;
  CHECK(answers_of(some).at(1).ends_with("; compare equal memory with --budget 6.25%mem."));
  for (Record& r : some) r.budget_tokens = 1024;
  CHECK(answers_of(some).at(1).ends_with("of the full cache."));
  const Record close[] = {row("a", "25%", 0.1, 100), row("b", "25%", 0.2, 104.9)};
  CHECK(answers_of(close).size() == 1);
  const Record reads[] = {row("a", "25%read", 0.1, 50), row("b", "25%read", 0.2, 40)};
  CHECK(answers_of(reads).at(1) ==
        "These rows do not cost the same: they read from 0.2 (b) to 0.25 (a) of the full cache.");
}

TEST_CASE("rows that were calibrated on the evaluated text are not ranked, and named") {
  Record calibrated = row("q", "64", 0.01, 25);
  calibrated.reason = "calibrated on the evaluated context; q: 4 bits";
  const Record rows[] = {calibrated, row("a", "64", 0.1, 25), row("b", "64", 0.2, 25)};
  CHECK(standing(rows) == "a: | b | |");
  CHECK(answers_of(rows).back() ==
        "Not ranked, because the published method is calibrated on another text (--calibrate): q.");
}

TEST_CASE("rows without results are not ranked") {
  Record failed = row("b", "64", 0.1, 25);
  failed.status = Status::infeasible;
  const Record rows[] = {row("a", "64", 0.1, 25), failed};
  CHECK(answers_of(rows).empty());
}

TEST_CASE("each trace has an answer of its own") {
  Record rows[] = {row("a", "64", 0.1, 25), row("b", "64", 0.2, 25), row("a", "64", 0.4, 25), row("b", "64", 0.2, 25)};
  for (Record& r : rows) r.trace = "one.h5", r.sha256 = "1";
  for (Record* r : {&rows[2], &rows[3]}) r->trace = "two.h5", r->sha256 = "2";
  CHECK(standing(rows) == "a: | b | |");
  CHECK(standing(rows, 1) == "b: | a | |");
  CHECK(answers_of(rows).at(0).starts_with("one.h5: At a budget of 64 tokens, a "));
}

TEST_CASE("rows that were not tested are not tied, and the answer says what a test takes") {
  Record rows[] = {row("a", "64", 0.1, 25, true), row("b", "64", 0.2, 25, std::nullopt),
                   row("drawn", "64", 0.3, 25, std::nullopt)};
  for (Record& r : rows) r.best = "a", r.blocks = 3;
  CHECK(standing(rows) == "a: | | b drawn |");
  CHECK(answers_of(rows).at(1) ==
        "Nothing was tested. A test takes evenly spaced layers without errors of 0, three texts, or at least 7 "
        "blocks of 16 neighbouring queries (here 3) and several seeds where a method draws at random.");
  rows[1].tied = false;
  CHECK(standing(rows) == "a: | b | drawn |");
}

TEST_CASE("rows that were tested over layers and texts are ranked by the mean that was tested") {
  const auto geometric = [](Record r, double mean) {
    r = marked(std::move(r), "a", mean / 0.08, "10 of 30 layers");
    r.geomean = mean;
    return r;
  };
  Record rows[] = {geometric(row("b", "64", 0.09, 25, true), 0.1), geometric(row("a", "64", 0.1, 25, true), 0.08),
                   geometric(row("c", "64", 0.2, 25), 0.16), row("exact-layer", "64", 0.15, 25, std::nullopt)};
  rows[3].best = "a";
  CHECK(standing(rows) == "a: b | c | exact-layer |");
  const BudgetAnswer answer = budget_answers(rows).at(0);
  CHECK(answer.standing.next()->ratio == 2);
  CHECK(answer.standing.next()->interval.hi == 4);
  CHECK(answer.ranked.at(1) == &rows[0]);
  CHECK(answer.verdict.find("(geometric mean 0.08); b (1.25 times)") != std::string::npos);
  CHECK(answer.notes.at(0).ends_with("exact-layer (0.15). An error of 0 on a layer of a text has no ratio."));
}

TEST_CASE("rows over other queries than the best are not ranked") {
  Record rows[] = {row("few", "64", 0.01, 25), row("a", "64", 0.1, 25, true), row("b", "64", 0.2, 25)};
  for (Record* r : {&rows[1], &rows[2]}) r->best = "a";
  CHECK(standing(rows) == "a: | b | | few");
  CHECK(
      answers_of(rows).at(1) ==
      "Not ranked, because they stand in another table than a, answered other layers, texts or queries, or are a part "
      "of a plan: few "
      "(0.01).");
}

TEST_CASE("a mean whose interval spans more than a factor of four is not estimable") {
  Record rows[] = {row("a", "64", 0.1, 25), row("tail", "64", 0.2, 25)};
  Summary& summary = rows[1].metrics[Metric::rel_err];
  summary.lo = 0.1, summary.hi = 0.4;
  CHECK(answers_of(rows).size() == 1);
  summary.hi = 0.41;
  CHECK(answers_of(rows).at(1) ==
        "The mean error of tail is not estimable from these queries: a few huge errors determine it. Compare medians.");
}

TEST_CASE("the layers that rows summarise, of how many") {
  Record rows[] = {row("a", "64", 0.1, 25), row("b", "64", 0.2, 25)};
  CHECK(layers_of(rows).empty());  // of a file without the number of layers
  for (Record& r : rows) r.layers = r.compressed_layers = {1, 8}, r.model_layers = 30;
  CHECK(layers_of(rows) == "Layers 1, 8 of 30.");
  rows[1].compressed_layers = {8};
  CHECK(layers_of(rows).empty());
  rows[0].compressed_layers = {8};
  CHECK(layers_of(rows) == "Layer 8 of 30; 1 more kept whole.");
  for (Record& r : rows) r.layers = r.compressed_layers = {0, 1}, r.model_layers = 2;
  CHECK(layers_of(rows) == "All 2 layers.");
}

TEST_CASE("rows of layers that are kept whole are not ranked") {
  Record rows[] = {row("a", "64", 0.1, 25), row("b", "64", 0, 25)};
  rows[1].dense = true;
  CHECK(answers_of(rows).empty());
}

TEST_CASE("on how many texts a configuration has the lowest error") {
  std::vector<Record> rows = {row("a", "64", 0.1, 25), row("b", "64", 0.2, 25), row("a", "64", 0.4, 25),
                              row("b", "64", 0.2, 25)};
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i].prompt = i < 2 ? "0" : "1";
  CHECK(wins_of(rows) == Answers{"At a budget of 64 tokens, a has the lowest error on 1 of 2 texts, b on 1."});
  CHECK(answers_of(std::span(rows).first(2), rows).at(1) == wins_of(rows).at(0));
  for (const char* method : {"a", "b"}) {
    rows.push_back(row(method, "64", method[0] == 'a' ? 0.3 : 0.1, 25));
    rows.back().prompt = "2";
  }
  CHECK(wins_of(rows) == Answers{"At a budget of 64 tokens, b has the lowest error on 2 of 3 texts, a on 1."});
  rows.resize(4);
  rows[2].metrics[Metric::rel_err].mean = 0.05;
  CHECK(wins_of(rows) == Answers{"At a budget of 64 tokens, a has the lowest error on 2 of 2 texts."});
  CHECK(wins_of(std::span(rows).first(2)).empty());
  rows.erase(rows.begin() + 1), rows.pop_back();
  CHECK(wins_of(rows).empty());  // a on both texts, and nothing to compare it with
}

namespace {

/// A row that mark_best() ranked by predicted KL.
Record predicted(Record r, double kl, double geomean = NAN, std::string about = "all layers") {
  r.ranked_by = figure_named("kl_predicted");
  r.kl = {.mean = kl, .interval = {kl / 2, kl * 2}, .about = std::move(about)};
  r.geomean = geomean;
  return r;
}

}  // namespace

TEST_CASE("rows that are ranked by predicted KL say so, with its interval, its ratio and what it is about") {
  const Record rows[] = {marked(predicted(row("a", "25%mem", 0.9, 25, true), 0.0085, 0.006), "a", 1, ""),
                         marked(predicted(row("b", "25%mem", 0.1, 25), 0.03, 0.018), "a", 3, "6 texts"),
                         predicted(row("exact", "25%mem", 0, 25), 0)};
  CHECK(answers_of(rows) ==
        Answers{"At 25 % of the memory, a has the lowest predicted KL of the 2 methods run (geometric mean over texts "
                "0.006, mean 0.0085 nats per token, 95 % interval 0.00425 to 0.017); the next is b with 3 times the "
                "predicted KL (adjusted 95 % interval 1.5 to 6). Tested over 6 texts."});
  const Record one[] = {
      marked(predicted(row("a", "64", 0.9, 25, true), 0.01, NAN, "30 layers, from 10; 1 of 2 texts"), "a", NAN, ""),
      marked(predicted(row("b", "64", 0.1, 25, true), 0.02), "a", NAN, "16 probes")};
  CHECK(answers_of(one) == Answers{"At a budget of 64 tokens, this trace cannot tell which method has the lowest "
                                   "predicted KL: a (0.01 nats per token, 95 % interval 0.005 to 0.02; 30 layers, from "
                                   "10; 1 of 2 texts), b (KL 0.02). Tested over 16 probes, for the replayed texts "
                                   "alone."});
}

TEST_CASE("a prediction above 0.15 nats is beyond its range, which sentences say of the best and of the others") {
  const Record rows[] = {predicted(row("a", "64", 0.9, 25), 0.2, NAN, "all layers; large"),
                         predicted(row("b", "64", 0.1, 25), 0.4)};
  const Answers said = answers_of(rows);
  CHECK(said.at(0).find("(0.2 nats per token, 95 % interval 0.1 to 0.4; all layers; large)") != std::string::npos);
  CHECK(said.at(1) ==
        "Above 0.15 nats a prediction does not say how large the damage is, so that ranks there are uncertain: a "
        "(0.2), b (0.4).");
}

TEST_CASE("rows that cannot be predicted are not ranked: answers name them by layer and say what to do") {
  std::vector<replay::Record> rows = {predicted(row("a", "64", 0.9, 25), 0.02),
                                      predicted(row("b", "64", 0.1, 25), 0.04)};
  for (const char* name : {"q4_0", "q5_1", "knorm"}) rows.push_back(predicted(row(name, "64", 0.1, 25), 0.001));
  rows[2].kl.outside = "layer 0, error 0.64 of the stream", rows[3].kl.outside = "layer 0, error 0.5 of the stream";
  rows[4].kl.outside = "layer 11, error inf of the stream";
  const auto mentions = [](const Answers& said, const std::string& text) {
    return std::ranges::any_of(said, [&](const std::string& one) { return one.find(text) != std::string::npos; });
  };
  const Answers said = answers_of(rows);
  CHECK(mentions(said, "of the 2 methods"));
  CHECK(mentions(said,
                 "Cannot be predicted, because the error of a layer is more than 0.3 of the residual stream: q4_0, "
                 "q5_1 (layer 0), knorm (layer 11). Measure them in the model (kvbench eval)."));
  for (replay::Record& r : rows) rank_by(r, figure_named("rel_err"));
  CHECK(!mentions(answers_of(rows), "Cannot be predicted"));
}

TEST_CASE("rows that are ranked by residual errors say so") {
  Record rows[] = {row("a", "64", 0.9, 25), row("b", "64", 0.1, 25)};
  double rms = 0.02;
  for (Record& r : rows) {
    r.ranked_by = figure_named("residual_err");
    r.metrics[Metric::residual_err].rms = rms, rms *= 2;
  }
  CHECK(answers_of(rows).at(0).starts_with(
      "At a budget of 64 tokens, a has the lowest residual error of the 2 methods run (root mean square 0.02); the "
      "next is b with 2 times the residual error"));
}

TEST_CASE("predictions of rounding and of dropping are not equally right, which a comparison of both says") {
  const auto warns = [](const char* a, const char* b) {
    const Record rows[] = {predicted(row(a, "64", 0.9, 25), 0.02), predicted(row(b, "64", 0.1, 25), 0.04)};
    const Answers said = answers_of(rows);
    return std::ranges::any_of(said,
                               [](const std::string& text) { return text.starts_with("Where tokens are dropped"); });
  };
  CHECK(warns("int4", "h2o"));
  CHECK(warns("h2o+q5_1", "q5_1"));
  CHECK(!warns("h2o", "snapkv+kivi4"));
  CHECK(!warns("int4", "q5_1"));
}

TEST_CASE("what holds at several budgets is one sentence of a page, and one of each budget otherwise") {
  std::vector<Record> rows;
  for (const char* budget : {"25%mem", "25%read"}) {
    for (const char* method : {"h2o", "sink", "int", "cam"}) {
      if (budget[3] == 'm' && method[0] == 'c') continue;
      rows.push_back(row(method, budget, 0.5, 25, std::nullopt));
      rows.back().ranked_by = figure_named("kl_predicted");
      rows.back().best = "h2o", rows.back().kl.mean = method[0] == 'h' ? 0.1 : budget[3] == 'm' ? 0.25 : 0.5;
    }
  }
  const auto said = [&](std::string_view begin, Notes notes) {
    Answers found = answers_of(rows, {}, notes);
    std::erase_if(found, [&](const std::string& one) { return !one.starts_with(begin); });
    return found;
  };
  const std::string large =
      "Above 0.15 nats a prediction does not say how large the damage is, so that ranks there are "
      "uncertain: ";
  CHECK(said("Above", Notes::last) == Answers{large + "at 25 % of the memory sink (0.25), int (0.25); at 25 % of the "
                                                      "bytes read sink (0.5), int (0.5), cam (0.5)."});
  CHECK(said("Above", Notes::of_budget) ==
        Answers{large + "sink (0.25), int (0.25).", large + "sink (0.5), int (0.5), cam (0.5)."});
  const std::string needs =
      "A test takes three texts, or at least {} probes, and several seeds where a method draws at "
      "random.";
  CHECK(needs_of(budget_answers(rows)) == fmt::format(fmt::runtime(needs), "7 to 8"));
  CHECK(said("Nothing", Notes::last) == Answers{"Nothing was tested. " + fmt::format(fmt::runtime(needs), "7 to 8")});
  CHECK(said("Nothing", Notes::of_budget).size() == 2);
  for (std::size_t i = 0; i < 3; ++i) {
    rows.push_back(rows[i]);
    rows.back().budget = Budget::parse("50%mem"), rows.back().kl.mean *= 2;
  }
  CHECK(said("Above", Notes::last).back() ==
        large + "at 50 % of the memory h2o (0.2), sink (0.5), int (0.5).");  // with which no page opens
  rows.resize(3);
  CHECK(said("Above", Notes::last) == Answers{large + "sink (0.25), int (0.25)."});
}
