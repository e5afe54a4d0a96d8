// SPDX-License-Identifier: Apache-2.0
// The rows of kvbench info --rounding: a kv head and a format each.
#pragma once

#include <span>
#include <string>
#include <vector>

#include <kvbench/rounding/rounding.hpp>
#include <kvbench/trace/reader.hpp>

namespace kvbench::app {

/// All kv heads of a trace, measured on `threads` threads (0: all), rounding::worst_first(). Throws as
/// rounding::measure_head() does.
std::vector<rounding::HeadRounding> measure_rounding(const trace::Reader& reader, int threads, bool quiet);

/// A row for each format of each head, as CSV or JSON.
std::string rounding_table(const trace::Reader& reader, std::span<const rounding::HeadRounding> heads,
                           const std::string& format);

/// The answer, with the worst head of each layer in a few lines, or every head.
std::string rounding_text(std::span<const rounding::HeadRounding> heads, bool every_head);

}  // namespace kvbench::app
