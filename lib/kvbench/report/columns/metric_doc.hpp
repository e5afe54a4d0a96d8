// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <kvbench/replay/records/results.hpp>

namespace kvbench::report {

/// What a metric is, in a few words: for the documentation of columns and for tables.
std::string doc_of_metric(replay::Metric metric);

}  // namespace kvbench::report
