// SPDX-License-Identifier: Apache-2.0
// libFuzzer target: any bytes are a table from which a report and a comparison are made, or give Error.
#include <cstdint>
#include <string_view>

#include <kvbench/compare/comparison.hpp>
#include <kvbench/core/error.hpp>
#include <kvbench/report/document/writers.hpp>
#include <kvbench/report/read/table_kind.hpp>
#include <kvbench/report/read/table_results.hpp>
#include <kvbench/report/report.hpp>

#include "scratch.hpp"

std::size_t inputs_read = 0;

namespace {

using namespace kvbench;
using namespace kvbench::compare;
using namespace kvbench::replay;
using namespace kvbench::report;

void report_all(std::string_view text) {
  const CsvTable table = parse_csv(text, "f.csv");
  if (table.has("claim_verdict")) verdict_text(claims_of(table));
  const Document document = make_report({&table, 1}, {});
  html(document);
  markdown(document);
  ++inputs_read;
}

void compare_queries() {
  const QueryCsv results(fuzz::scratch(), "rel_err");
  compare::compare({.files = {&results}, .metric = info_of(Metric::rel_err), .span = Span::layer});
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    report_all({reinterpret_cast<const char*>(data), size});
  } catch (const Error&) {
  }
  const fuzz::ScratchFile file(data, size);
  try {
    compare_queries();
  } catch (const Error&) {
  }
  return 0;
}
