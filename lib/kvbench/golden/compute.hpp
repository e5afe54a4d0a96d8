// SPDX-License-Identifier: Apache-2.0
// Golden rows: which they are, that is the methods, their budgets and the places of the bundled trace; and computed.
#pragma once

#include <span>
#include <vector>

#include <kvbench/golden/row.hpp>
#include <kvbench/replay/plan/request.hpp>
#include <kvbench/replay/records/results.hpp>
#include <kvbench/trace/reader.hpp>

namespace kvbench::golden {

/// A method that has golden rows, and what is replayed in its place: itself, or a port of it.
struct Method {
  replay::MethodChoice named, replayed;
};

/// The rows of `--method all`, then an oracle and wrappers that it leaves out.
std::vector<Method> golden_methods();

/// Whether golden rows of a method state predicted KL, which another recording of the trace changes: those of an
/// eviction, of merged entries and of rounded ones.
bool states_prediction(const replay::MethodChoice& method);

/// The rows of these methods on the back end of the options, by method, budget and place; also of configurations that
/// did not run, with the reason in `fault`. Progress counts replays. Throws as replay::replay() does.
std::vector<Row> compute_rows(const trace::Reader& reader, std::span<const Method> methods,
                              const replay::RunOptions& options, const replay::ReplayHooks& hooks);

/// The golden row of one configuration result with raw results, on a kv head with `group` query heads and `queries`
/// evaluated queries: without trace, method and place.
Row row_of(const replay::ConfigurationResult& result, Index group, Index queries);

/// Joins rows of several back ends, each as long as the others and in the same order: rows of one key that agree become
/// one, with all their back ends and the figures of the first. `deviation` becomes the largest deviation (compare.hpp)
/// of rows that were joined. Throws Error where a configuration failed, or runs on one back end only.
std::vector<Row> join_backends(const std::vector<std::vector<Row>>& rows, double& deviation);

}  // namespace kvbench::golden
