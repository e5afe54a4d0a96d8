// SPDX-License-Identifier: Apache-2.0
// Every row of the registry, ready to run in a test: configured, on each host backend, behind one interface whether the method
// holds one kv head or a layer.
#pragma once

#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <support/head.hpp>

#include <kvbench/methods/registry.hpp>

namespace kvbench::testing {

/// A method with its parameters bound.
struct Row {
  const MethodInfo* info = nullptr;
  Params params;
};

/// All rows with their defaults, and those parameters of them that change the way of working.
std::vector<Row> all_rows();

/// Calls test(row, backend) for all rows on the reference and on the fast host backend, naming both where a check fails.
template <class Test>
void for_each_row(Test test) {
  for (const auto& make : {+[] { return make_ref_backend(); }, +[] { return make_cpu_backend(best_isa()); }}) {
    const auto backend = make();
    for (const Row& row : all_rows()) {
      CAPTURE(backend->device());
      CAPTURE(row.info->name);
      CAPTURE(row.params.text());
      test(row, *backend);
    }
  }
}

/// The kv heads that one instance of the method holds: one, or three of a layer.
using Heads = std::vector<HeadData>;
Heads heads_for(const Row& row, const Shape& shape, Backend& backend);

/// A cache over the kv heads of its instance. What it was made from is gone.
struct Instance {
  std::unique_ptr<LayerCache> cache;
};
/// A method prepared for the kv heads of an instance, to make caches one after the other.
class PreparedRow {
 public:
  PreparedRow(const Row& row, const std::vector<HeadPrompt>& prompts, Backend& backend);
  /// Throws Infeasible as the method does.
  Instance make(Index budget, std::uint32_t seed) const;

 private:
  const Row& row_;
  HeadPrompt head_;  ///< the first
  MakeLayerCache make_;
};
std::vector<HeadPrompt> prompts_of(const Heads& heads, Backend& backend);
/// Throws Unavailable or Infeasible as the method does. The budget of a planned method is the plan's for the layer.
Instance open(const Row& row, const Heads& heads, Index budget, std::uint32_t seed, Backend& backend);
Instance open(const Row& row, const std::vector<HeadPrompt>& prompts, Index budget, std::uint32_t seed, Backend& backend);
/// The same without a cache where the method refuses this budget or head, with a reason.
Instance try_open(const Row& row, const Heads& heads, Index budget, std::uint32_t seed, Backend& backend);

/// What each kv head did for a run of queries: entries and answers, by query row g*m + i.
struct Result {
  std::vector<std::vector<Entry>> entries;
  std::vector<float> answers;
};
/// Prefill: the context is compressed, the tokens after it are exact, the queries after it are answered. Checks the entries.
std::vector<Result> prefill(const Instance& instance, const Heads& heads, Backend& backend);
/// Decode: the tokens after the context are appended in blocks of at most `block`, each asked for. Results are those of single
/// queries, [head][token], rows g. Checks the entries.
std::vector<std::vector<Result>> decode(const Instance& instance, const Heads& heads, Index block, bool observes,
                                        Backend& backend);

/// Largest difference; infinity where either is not finite.
double max_difference(const std::vector<float>& a, const std::vector<float>& b);
bool all_finite(const std::vector<float>& values);

}  // namespace kvbench::testing
