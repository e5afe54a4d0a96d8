// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <set>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <kvbench/compare/comparison.hpp>
#include <kvbench/kernels/philox.hpp>
#include <kvbench/report/columns/tables.hpp>
#include <kvbench/report/read/rows.hpp>
#include <support/messages.hpp>
#include <unit/report/column_keys.hpp>

using namespace kvbench;
using namespace kvbench::compare;
using namespace kvbench::replay;
using namespace kvbench::report;
using namespace kvbench::testing;

namespace {

template <class Row>
void check_units(std::span<const Column<Row>> columns) {
  for (const Column<Row>& column : columns) {
    CAPTURE(column.key);
    CHECK((column.type == "text" || column.type == "integer" || column.type == "number"));
    CHECK((column.key.find("bytes") != std::string::npos) == (column.unit == "B"));
    CHECK(column.key.ends_with("_s") == (column.unit == "s"));
    CHECK(column.key.ends_with("_tokens") == (column.unit == "tokens"));
    CHECK(column.key.ends_with("_flops") == (column.unit == "flop"));
    CHECK(column.time == (column.unit == "s"));
  }
}

}  // namespace

TEST_CASE("columns of every table have unique keys and a description, and times come last") {
  check_keys(record_columns());
  check_keys(eval_columns());
  check_keys(check_columns());
  check_keys(claim_columns());
  check_keys(compare_columns());
  check_keys(measure_columns());
}

TEST_CASE("columns of rows and of evaluations have a type, and the unit in their names") {
  check_units(record_columns());
  check_units(eval_columns());
}

TEST_CASE("JSON has numbers as numbers, null for nothing, and texts in quotes") {
  for (const char* number : {"0", "-1", "12.5", "1e-05", "-0.25E+3", "9007199254740993"})
    CHECK(json_value(number, true) == number);
  for (const char* text : {"inf", "-inf", "nan", "01", ".5", "5.", "1e", "+1", "0x1", "all", "1 "})
    CHECK(json_value(text, true) == fmt::format("\"{}\"", text));
  CHECK(json_value("256", false) == "\"256\"");
  CHECK(json_value("", true) == "null");
  CHECK(json_text("a\"b\\c\nd") == R"("a\"b\\c\nd")");
  CHECK(json_text("\x1b\xff\xc3\xa9") == "\"\\\\x1b\\\\xff\xc3\xa9\"");
}

TEST_CASE("every metric has its mean and the quantile of its bad tail") {
  std::set<std::string> keys;
  for (const Column<Record>& column : record_columns()) keys.insert(column.key);
  for (const Metric m : all_metrics()) {
    const std::string name(name_of(m));
    CAPTURE(name);
    CHECK(keys.contains(name + "_mean"));
    // kveval has a figure of its own for what an error is in the residual stream, which it reads from the model.
    const std::string evaluated = name == "residual_err" ? name : name + "_mean";
    CHECK(std::ranges::count(eval_columns(), evaluated, &Column<eval::EvalRecord>::key) == (name != "stream_err"));
    CHECK(keys.contains(name + "_p99") == (info_of(m).better != Better::larger));
    CHECK(keys.contains(name + "_p1") == (info_of(m).better == Better::larger));
  }
  for (const char* suffix : {"p50", "p90", "max", "lo", "hi"}) CHECK(keys.contains(std::string("rel_err_") + suffix));
}

TEST_CASE("what a column prints it parses: a row reads back as the same row") {
  Record row;
  row.run = "a", row.trace = "t.h5", row.sha256 = "abc", row.model = "=tiny", row.prompt = "all", row.layer = 3;
  row.protocol = Protocol::decode, row.device = "cpu", row.isa = "avx2";
  row.method = "uniform", row.params = "a=1;b=\"2\"", row.budget = Budget::parse("25%mem");
  row.seeded = row.dense = true, row.reason = "a, b";
  row.query_rows = 17, row.layer_count = 2, row.model_layers = 30, row.alone = false;
  row.best = "sink", row.tied = false;
  double next = 0.1;
  for (double* value : {&row.context_tokens, &row.budget_tokens, &row.kept_tokens, &row.bytes.kv, &row.bytes.meta,
                        &row.bytes.fast, &row.bytes.slow, &row.bytes.read, &row.bytes.full, &row.peak_bytes,
                        &row.compress_flops, &row.attend_flops, &row.diff_best, &row.diff_best_interval.lo,
                        &row.diff_best_interval.hi, &row.compress_s, &row.attend_s, &row.exact_s})
    *value = next += 1.1;
  for (const Metric m : all_metrics()) {
    const double s = std::isfinite(info_of(m).limits.hi) ? 1e-3 : 1;
    next += 1.1;
    row.metrics[m] = {s * next, s * (next + 1), s * (next + 2), s * (next + 3), s * (next + 4), s * (next + 5),
                      s,        s * 2};
  }
  row.rel_err_fro = {next + 1, 0, 0, 0, next + 2};
  row.kl = {
      .mean = 0.5, .interval = {0.25, 1}, .outside = "layer 0, error 0.64 of the stream", .about = "all layers; large"};
  row.blocks = 5;
  Record head = row;
  head.kv_head = 1, head.query_head = 2, head.query = 40, head.seed = 7, head.tied = {};
  Record failed;
  failed.trace = "t.h5", failed.status = Status::failed, failed.reason = "why";
  const std::vector<Record> rows = {row, head, failed};
  const std::string csv = csv_of(record_columns(), rows);
  const CsvTable table = parse_csv(csv, "r.csv");
  const RowReader<Record> read(table, record_columns());
  std::vector<Record> back;
  for (const CsvRow& line : table.rows) back.push_back(read(line));
  CHECK(csv_of(record_columns(), back) == csv);
  CHECK(csv.find("outside: layer 0, error 0.64 of the stream; all layers; large") != std::string::npos);
  CHECK(back[0].kl.outside == row.kl.outside);
  CHECK(back[0].kl.about == row.kl.about);
  CHECK(back[0].tied == false);
  CHECK(!back[1].tied);
  CHECK(back[1].seed == 7);
  const Metric ceiling = Metric::mass_ceiling;
  CHECK(back[0].metrics[ceiling].p1 == row.metrics[ceiling].p1);
}

TEST_CASE("a cell that cannot be read is named with file, line and column") {
  const auto refusal = [](const std::string& header, const std::string& cells) {
    const CsvTable table = parse_csv("protocol," + header + "\nprefill," + cells + "\n", "r.csv");
    return message_of<Error>([&] { RowReader<Record>(table, record_columns())(table.rows[0]); });
  };
  CHECK(refusal("status,kept_tokens", "ok,few") == "r.csv:2: column 'kept_tokens' holds 'few', which is not a number");
  CHECK(refusal("layer", "1.5") == "r.csv:2: column 'layer' holds '1.5', which is not a whole number of at least 0");
  CHECK(refusal("seed", "-1") == "r.csv:2: column 'seed' holds '-1', which is not a whole number of at least 0");
  CHECK(refusal("status", "fine") ==
        "r.csv:2: column 'status' holds 'fine', which is not one of ok, skipped, failed, infeasible");
}

TEST_CASE("a number that a column cannot have is named with file, line and column") {
  const auto message = [](auto columns, const std::string& column, const std::string& cell) {
    const CsvTable table = parse_csv("other," + column + "\nx," + cell + "\n", "r.csv");
    return message_of<Error>([&] {
      for (const auto& one : columns) {
        if (one.key == column) check_limits(table.cell(table.rows[0], column), one);
      }
    });
  };
  const auto replay = [&](const char* column, const char* cell) { return message(record_columns(), column, cell); };
  const auto eval = [&](const char* column, const char* cell) { return message(eval_columns(), column, cell); };
  const auto check = [&](const char* column, const char* cell) { return message(check_columns(), column, cell); };
  CHECK(replay("rel_err_mean", "-0.1") ==
        "r.csv:2: column 'rel_err_mean' holds '-0.1', which is not a number of at least 0");
  for (const char* column :
       {"rel_err_mean", "rel_err_lo", "rel_err_p99", "rel_err_fro_mean", "residual_err_rms", "kl_predicted",
        "kl_predicted_hi", "rel_err_geomean", "ratio_best", "total_bytes", "kept_tokens", "bytes_read", "compress_s"})
    CHECK_MESSAGE(contains(replay(column, "-1e-9"), "not a number of at least 0"), column);
  for (const char* column : {"recall_mean", "mass_recall_p1", "kept_mass_mean", "cache_hit_r1_mean"}) {
    CHECK_MESSAGE(contains(replay(column, "1.01"), "not a number from 0 to 1"), column);
    CHECK_MESSAGE(contains(replay(column, "-0.1"), "not a number from 0 to 1"), column);
    CHECK_MESSAGE(replay(column, "1.0000001") == "", column);  // rounding
  }
  for (const char* column :
       {"kl_mean", "kl_mean_lo", "nll", "ppl_ratio", "drift", "residual_err", "pass_s", "nll_margin"})
    CHECK_MESSAGE(contains(eval(column, "-0.5"), "not a number of at least 0"), column);
  for (const char* column : {"top1", "top1_hi", "match_p", "recall_mean", "match_margin"})
    CHECK_MESSAGE(contains(eval(column, "1.5"), "not a number from 0 to 1"), column);
  for (const char* column : {"p_value", "p_adjusted", "failure_lo", "allowed"})
    CHECK_MESSAGE(contains(check(column, "2"), "not a number from 0 to 1"), column);
  CHECK(contains(message(compare_columns(), "p_adjusted", "-1"), "not a number from 0 to 1"));
  CHECK(contains(message(claim_columns(), "p_value", "-1"), "not a number from 0 to 1"));
  CHECK(contains(replay("total_bytes", "inf"), "not finite"));
  CHECK(contains(replay("rel_err_mean", "nan"), "not a number"));
  for (const char* column : {"log_z_err_mean", "diff_best"}) CHECK_MESSAGE(replay(column, "-0.5") == "", column);
  CHECK(eval("nll_diff", "-0.5") == "");
  CHECK(replay("rel_err_mean", "inf") == "");  // an error beside an output of 0
}

TEST_CASE("numbers read back as the same double") {
  const auto round_trips = [](double value) {
    const std::string text = number_text(value);
    return !text.empty() &&
           std::bit_cast<std::uint64_t>(std::strtod(text.c_str(), nullptr)) == std::bit_cast<std::uint64_t>(value);
  };
  int finite = 0;
  for (std::uint32_t i = 0; i < 20000; ++i) {
    const PhiloxBlock words = philox4x32({{i, 1, 2, 3}}, {4, 5});
    const double any = std::bit_cast<double>(std::uint64_t{words.x[0]} << 32 | words.x[1]);
    const double usual = uniform52(words.x[2], words.x[3]) * 1000;
    CHECK_MESSAGE(round_trips(usual), usual);
    if (!std::isfinite(any)) continue;
    ++finite;
    CHECK_MESSAGE(round_trips(any), any);
  }
  CHECK(finite > 19000);
  for (const double value :
       {0.0, -0.0, 1.0, -3.0, 0.1, 1e15, 1e22, 123456789012345678.0, 5e-324, 1.7976931348623157e308}) {
    CHECK_MESSAGE(round_trips(value), value);
  }
}

TEST_CASE("short numbers, infinity and NaN") {
  CHECK(number_text(256) == "256");
  CHECK(number_text(0.25) == "0.25");
  CHECK(number_text(0.1) == "0.1");
  CHECK(number_text(std::numeric_limits<double>::quiet_NaN()).empty());
  CHECK(number_text(std::numeric_limits<double>::infinity()) == "inf");
  CHECK(number_text(-std::numeric_limits<double>::infinity()) == "-inf");
}
