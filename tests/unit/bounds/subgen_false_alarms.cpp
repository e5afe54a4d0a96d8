// SPDX-License-Identifier: Apache-2.0
// Rate of false alarms of SubGen's law rows: the checks run repeatedly on the correct method with different seeds.
#include "subgen_fixture.hpp"

#include <cmath>
#include <map>

#include <kvbench/bounds/subgen/subgen_amm.hpp>
#include <kvbench/bounds/subgen/subgen_lemma1.hpp>
#include <kvbench/bounds/subgen/subgen_lemma2.hpp>
#include <kvbench/bounds/subgen/subgen_partition.hpp>
#include <kvbench/methods/sampling/reservoir.hpp>
#include <kvbench/methods/stages/draws.hpp>

using namespace kvbench;
using namespace kvbench::testing;

TEST_CASE("the rate of false alarms of law rows is at most their level") {
  constexpr std::uint32_t repeats = 100, seeds = 100;
  const auto backend = make_cpu_backend();
  const Subject subject = subgen_subject(*backend);
  const SubgenValues values = subgen_values(subject);
  const std::vector<SubgenQuery> queries = subgen_queries(subject);
  const SubgenSetup setup = radius_setup(subject, 0.8, 3, *backend);
  const SubgenRunner runner(subject, setup, *backend);
  const SlotHistory slots = [&](std::uint32_t seed, std::span<const Index> times) {
    const Draws draws(seed, "subgen", subject.head);
    Reservoir reservoir(16, 0);
    std::vector<std::vector<TokenId>> history;
    for (Index n = 0, next = 0; n < subject.tokens(); ++n) {
      reservoir.offer(draws, static_cast<TokenId>(n), values.norms2[static_cast<std::size_t>(n)]);
      if (n + 1 != times[static_cast<std::size_t>(next)]) continue;
      history.emplace_back(16);
      for (const Reservoir::Slot& slot : reservoir.held()) history.back()[slot.draw] = slot.token;
      ++next;
    }
    return history;
  };
  std::map<std::string, std::vector<double>> p_values;  // by part
  for (std::uint32_t repeat = 0; repeat < repeats; ++repeat) {
    const std::uint32_t first = 1000 * (repeat + 1);
    const Judged judged(
        *backend, subject,
        [&](CheckContext& context) {
          check_partition(context, setup, queries, [&](std::uint32_t seed) { return runner.answered(first + seed); });
          check_product(context, values, queries, setup.slots,
                        [&](std::uint32_t seed) { return runner.answered(first + seed); });
          check_samples(context, setup, [&](std::uint32_t seed) { return runner.kept(first + seed); });
          check_slots(context, values, std::array<Index, 2>{60, 240},
                      [&](std::uint32_t seed, std::span<const Index> times) { return slots(first + seed, times); });
        },
        seeds);
    for (const CheckRow& row : judged.rows()) p_values[row.part].push_back(row.p_value);
  }
  for (const auto& values : p_values) {
    const auto& part = values.first;
    for (const double level : {0.05, 0.01}) {
      double alarms = 0;
      for (const double p : values.second) alarms += p < level ? 1 : 0;
      const double expected = level * repeats;
      INFO(part << ", level " << level << ": " << alarms << " of " << repeats);
      CHECK(alarms <= expected + 5 * std::sqrt(expected));
    }
  }
}
