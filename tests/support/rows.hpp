// SPDX-License-Identifier: Apache-2.0
// Every row of the registry, ready to run in a test: configured, on each host backend, with one interface for methods
// of single kv heads and of layers.
#pragma once

#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <support/head.hpp>

#include <kvbench/methods/registry.hpp>

namespace kvbench::testing {

/// A method with its parameters bound.
struct Row {
  const methods::MethodInfo* info = nullptr;
  methods::Params params;
};

/// All rows with their defaults, their variants, and with parameters that select other algorithms.
std::vector<Row> all_rows();

/// Calls test(row, backend) for all rows on the reference and on the fast host backend, reporting both where a check
/// fails.
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

/// A cache over the kv heads of its instance. The objects from which it was made have been destroyed.
struct Instance {
  std::unique_ptr<methods::LayerCache> cache;
};
/// A method prepared for the kv heads of an instance, from which caches are made.
class PreparedRow {
 public:
  PreparedRow(const Row& row, const std::vector<methods::HeadPrompt>& prompts, Backend& backend);
  /// Throws Infeasible as the method does.
  Instance make(Index budget, std::uint32_t seed) const;

 private:
  const Row& row_;
  methods::HeadPrompt head_;  ///< of the first head
  methods::MakeLayerCache make_;
};
std::vector<methods::HeadPrompt> prompts_of(const Heads& heads, Backend& backend);
/// Throws Unavailable or Infeasible as the method does. The budget of a planned method is that of the plan for the
/// layer.
Instance open(const Row& row, const Heads& heads, Index budget, std::uint32_t seed, Backend& backend);
Instance open(const Row& row, const std::vector<methods::HeadPrompt>& prompts, Index budget, std::uint32_t seed,
              Backend& backend);
/// The same, without a cache where the method is infeasible at this budget or unavailable for this head.
Instance try_open(const Row& row, const Heads& heads, Index budget, std::uint32_t seed, Backend& backend);

/// The results of a kv head for a run of queries: entries and answers, by query row g*m + i.
struct Result {
  std::vector<std::vector<Entry>> entries;
  std::vector<float> answers;
};
/// Prefill: the context is compressed, the tokens after it are exact, the queries after it are answered. Checks the
/// entries.
std::vector<Result> prefill(const Instance& instance, const Heads& heads, Backend& backend);
/// Decode: the tokens after the context are appended in blocks of at most `block`, and the queries of each block are
/// answered. Results are those of single queries, [head][token], rows g. Checks the entries.
std::vector<std::vector<Result>> decode(const Instance& instance, const Heads& heads, Index block, bool observes,
                                        Backend& backend);

/// Largest difference; infinity where either is not finite.
double max_difference(const std::vector<float>& a, const std::vector<float>& b);
bool all_finite(const std::vector<float>& values);

}  // namespace kvbench::testing
