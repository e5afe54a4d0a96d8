// SPDX-License-Identifier: Apache-2.0
#include <apps/kvbench/rounding_rows.hpp>

#include <filesystem>

#include <fmt/ranges.h>

#include <kvbench/replay/plan/selection.hpp>
#include <kvbench/replay/replay.hpp>
#include <kvbench/report/claims/sections.hpp>
#include <kvbench/report/columns/column.hpp>
#include <kvbench/report/document/writers.hpp>

#include <apps/common/rows/progress.hpp>
#include <apps/common/stop_signals.hpp>

namespace kvbench::app {
namespace {

struct FormatRow {
  const trace::Reader& trace;
  const rounding::HeadRounding& head;
  const rounding::KeyFormat& format;
  const rounding::Rounded& result;
};

std::vector<report::Column<FormatRow>> columns() {
  const auto column = [](const char* key, auto of) {
    return report::Column<FormatRow>{key, "", report::value_where<FormatRow>(report::always, of)};
  };
  return {column("trace", [](auto& r) { return std::filesystem::path(r.trace.path()).filename().string(); }),
          column("sha256", [](auto& r) { return r.trace.sha256().substr(0, 12); }),
          column("model", [](auto& r) { return r.trace.info().model; }),
          column("prompt", [](auto& r) { return r.head.prompt; }),
          column("name", [](auto& r) { return r.head.name; }),
          column("layer", [](auto& r) { return r.head.layer; }),
          column("kv_head", [](auto& r) { return r.head.kv_head; }),
          column("constant", [](auto& r) { return r.head.keys.constant; }),
          column("channel", [](auto& r) { return r.head.keys.channel; }),
          column("channel_mean", [](auto& r) { return r.head.keys.mean; }),
          column("outliers", [](auto& r) { return fmt::format("{}", fmt::join(r.head.keys.outliers, " ")); }),
          column("family", [](auto& r) { return std::string(name_of(r.format.family)); }),
          column("format", [](auto& r) { return r.format.name(); }),
          column("bits", [](auto& r) { return r.result.bits; }),
          column("moved", [](auto& r) { return r.result.moved; }),
          column("queries", [](auto& r) { return r.head.queries; }),
          column("reason", [](auto& r) { return r.result.reason; }),
          report::version_column<FormatRow>(),
          report::commit_column<FormatRow>()};
}

}  // namespace

std::vector<rounding::HeadRounding> measure_rounding(const trace::Reader& reader, int threads, bool quiet) {
  const std::vector<replay::HeadPlace> places = replay::select_heads(reader.info(), {});
  std::vector<rounding::HeadRounding> heads(places.size());
  Progress progress("kv heads", quiet);
  const replay::ReplayHooks hooks{.progress = [&](double finished, Index of) { progress.show(finished, of); },
                                  .stop = &stop_requested()};
  run_work_items(places.size(), {.threads = threads}, hooks, [&](Backend& backend, std::size_t i, const auto&) {
    heads[i] = rounding::measure_head(reader, places[i], backend, hooks.stop);
  });
  return rounding::worst_first(std::move(heads));
}

std::string rounding_table(const trace::Reader& reader, std::span<const rounding::HeadRounding> heads,
                           const std::string& format) {
  std::vector<FormatRow> rows;
  for (const rounding::HeadRounding& head : heads) {
    for (std::size_t f = 0; f < head.formats.size(); ++f)
      rows.push_back({reader, head, rounding::key_formats()[f], head.formats[f]});
  }
  const auto table = columns();
  return report::table_of(format, std::span(table), std::span<const FormatRow>(rows));
}

std::string rounding_text(std::span<const rounding::HeadRounding> heads, bool every_head) {
  std::vector<report::Block> blocks = report::rounding_blocks(heads, every_head);
  if (every_head) return report::terminal_text(blocks);
  return report::terminal_text(report::shortened(std::move(blocks), [](std::size_t) {
    return std::vector<std::string>{"--rows head shows every kv head; -o FILE.csv writes every format of each."};
  }));
}

}  // namespace kvbench::app
