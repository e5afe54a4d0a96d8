// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/eval/turns.hpp>

#include <doctest/doctest.h>

#include <unit/report/eval_lines.hpp>
#include <unit/report/replay_lines.hpp>

using namespace kvbench;
using namespace kvbench::eval;
using namespace kvbench::report;
using namespace kvbench::report_test;

namespace {

/// Adds rows of a turn, one for each conversation, whose KL these are.
void add(std::vector<EvalRecord>& rows, const char* method, const char* rule, Index turn, const std::vector<double>& kl,
         const char* budget = "25%") {
  const std::string names[] = {"t-0", "t-1", "t-2"};
  for (std::size_t c = 0; c < kl.size(); ++c) {
    EvalRecord& row = rows.emplace_back(made_record({.method = method,
                                                     .budget = budget,
                                                     .document = names[c].c_str(),
                                                     .text = "talks.jsonl",
                                                     .kl = kl[c],
                                                     .documents = 1}));
    row.turn = turn, row.settings.protocol = EvalProtocol::parse(rule);
  }
}

/// Three conversations. snapkv by turn: 2, 4 and 8 times the KL at turn 4, twice that of a cache compressed anew.
std::vector<EvalRecord> conversations() {
  std::vector<EvalRecord> rows;
  add(rows, "snapkv", "compress turn", 2, {0.1, 0.1, 0.1});
  add(rows, "snapkv", "compress turn", 3, {0.1, 0.2, 0.4});
  add(rows, "snapkv", "compress turn", 4, {0.2, 0.4, 0.8});
  add(rows, "q4_0", "compress turn", 2, {0.02, 0.2, 2}, "100%mem");
  add(rows, "q4_0", "compress turn", 4, {0.04, 0.4, 4}, "100%mem");
  add(rows, "h2o", "compress 64", 2, {0.2, 0.2, 0.2});
  add(rows, "h2o", "compress 64", 4, {0.1, 0.1, 0.1});
  add(rows, "snapkv", "compress anew", 2, {0.1, 0.1, 0.1});
  add(rows, "snapkv", "compress anew", 4, {0.1, 0.2, 0.4});
  return rows;
}

std::vector<ConfigurationTurns> turns(const std::vector<EvalRecord>& rows) {
  std::vector<const EvalRow*> all;
  for (const EvalRecord& row : rows) all.push_back(&row);
  return turns_of(all);
}

std::vector<std::string> answers(const std::vector<EvalRecord>& rows) { return turn_answers(turns(rows)); }

}  // namespace

// The logarithms of 2, 4 and 8 to the base 2 have the mean 2 and the standard deviation 1. Student's t of two degrees
// of freedom is 4.3027 at 95 %: the exponents of the interval are 2 -+ 4.3027 / sqrt(3) = -0.4841 and 4.4841.
TEST_CASE("the table of turns by hand: last beside first, and beside a cache compressed anew") {
  const std::vector<EvalRecord> turns = conversations();
  std::vector<EvalRecord> rows = turns;  // a section takes rows over the conversations, too
  for (const EvalRecord& row : turns) {
    if (row.document != "t-0" || row.turn != 2) continue;
    rows.push_back(row);
    rows.back().document = "all", rows.back().document_sha256 = "", rows.back().turn = 0;
  }
  const Document document = make_report(std::vector{parse_csv(csv_of(eval_columns(), rows), "e.csv")}, {});
  std::vector<std::string> figures;
  for (const NamedDrawing& one : drawings_of(document))
    if (one.name.starts_with("damage-over-the-turns/")) figures.push_back(one.name.substr(22));
  CHECK(figures == std::vector<std::string>{"compressed-at-every-turn", "compressed-every-64-tokens",
                                            "compressed-anew-at-every-turn"});
  // 0.2 times 2 to -+ 4.3027 / sqrt(3)
  CHECK(contains(html(document), "0.200 [0.0357, 1.12]"));
  const std::string page = markdown(document);
  for (const char* line :
       {"| method | budget | compressed | KL, turn 2 | KL, turn 3 | KL, turn 4 | last/first | last/anew | verdict |",
        "| snapkv | 25% | turn | 0.1 | 0.2 | 0.4 | 4.00 [0.715, 22.4] | 2.00 [2.00, 2.00] | cannot tell |",
        "| q4_0 | 100%mem | turn | 0.2 | - | 0.4 | 2.00 [2.00, 2.00] | - | grows |",
        "| h2o | 25% | 64 | 0.2 | - | 0.1 | 0.500 [0.500, 0.500] | - | shrinks |",
        "| snapkv | 25% | anew | 0.1 | - | 0.2 | 2.00 [0.357, 11.2] | - | cannot tell |"})
    CHECK_MESSAGE(contains(page, line), page);
  CHECK(answers(conversations())[0] ==
        "snapkv at 25 % of the tokens, compressed at every turn: KL may grow or shrink: in turn 4 it is 4.00 [0.715, "
        "22.4] times that of turn 2, 3 conversations; 2.00 [2.00, 2.00] times that of a cache compressed anew at this "
        "turn.");
}

TEST_CASE("the last turn is that of all conversations, and pairs are of the same tokens") {
  std::vector<EvalRecord> rows = conversations();
  add(rows, "snapkv", "compress turn", 5, {9, 9});
  CHECK(answers(rows) == answers(conversations()));
  CHECK(turns(rows)[0].kl.at(5).mean == doctest::Approx(9));
  for (EvalRecord& row : rows)
    if (row.turn == 4 && row.document == "t-2") row.document_sha256 = "other";
  CHECK(contains(answers(rows)[0], "2.83 ["));  // the square root of 2 * 4
  CHECK(contains(answers(rows)[0], "2 conversations"));
}

TEST_CASE("no interval without two conversations, two turns and a KL above rounding") {
  std::vector<EvalRecord> rows;
  add(rows, "snapkv", "compress once", 2, {0.1});
  add(rows, "snapkv", "compress once", 3, {0.2});
  add(rows, "h2o", "compress once", 2, {0.1, 0.1});
  add(rows, "exact", "compress once", 2, {1e-9, 1e-9});
  add(rows, "exact", "compress once", 3, {1e-9, 1e-9});
  CHECK(answers(rows)[0] ==
        "snapkv at 25 % of the tokens, compressed once: cannot tell whether KL grows over the turns: one conversation, "
        "and an interval takes two.");
  CHECK(contains(answers(rows)[1], "no conversation has two scored turns"));
  CHECK(contains(answers(rows)[2], "KL is below 1e-06 nats"));
}

TEST_CASE("rows of all conversations, of layers, of other injections and that failed are not counted") {
  std::vector<EvalRecord> rows = conversations();
  for (EvalRecord other : conversations()) {
    other.of(damage("kl_mean")).mean *= static_cast<double>(other.turn * other.turn);
    rows.insert(rows.end(), 5, other);
    const auto added = rows.end() - 5;
    added[0].layer = 3, added[1].injection.mode = Inject::none, added[2].document = "all";
    added[3].status = replay::Status::failed, added[4].turn = 0;
  }
  CHECK(answers(rows) == answers(conversations()));
  for (EvalRecord& row : rows)
    if (row.method == "h2o" && row.turn == 2) row.compressed_layers = 29;
  CHECK(contains(answers(rows)[2], "no conversation has two scored turns"));
}
