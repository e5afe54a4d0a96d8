// SPDX-License-Identifier: Apache-2.0
// libFuzzer target: any bytes are a table of kveval from which a report and comparisons of documents are made, or give
// Error.
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
using namespace kvbench::report;

void report_evaluations(std::string_view text) {
  const CsvTable table = parse_csv(text, "f.csv");
  if (kind_of(table) != TableKind::evaluations) return;
  const Document document = make_report({&table, 1}, {});
  html(document);
  markdown(document);
  ++inputs_read;
}

void compare_documents(eval::Damage metric) {
  const DocumentResults results(fuzz::scratch(), metric);
  compare::compare({.files = {&results}, .metric = figure_of(metric).compared(), .span = compare::Span::all});
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    report_evaluations({reinterpret_cast<const char*>(data), size});
  } catch (const Error&) {
  }
  const fuzz::ScratchFile file(data, size);
  for (std::size_t f = 0; f < eval::damage_count; ++f) {
    try {
      compare_documents(static_cast<eval::Damage>(f));
    } catch (const Error&) {
    }
  }
  return 0;
}
