// SPDX-License-Identifier: Apache-2.0
// The predicted KL of a replay is that of a known network to second order, with every draw; planted faults are found.

#include <kvbench/faithful/checks/checks.hpp>
#include <kvbench/faithful/mutants/mutant.hpp>
#include <unit/bounds/judged.hpp>

using namespace kvbench;
using namespace kvbench::bounds;
using namespace kvbench::faithful;
using namespace kvbench::testing;

namespace {

std::vector<CheckRow> rows_of(Backend& backend, const RunCheck& check, std::uint32_t offset) {
  return judged_rows(backend, nullptr, check, {.seed_offset = offset});
}

}  // namespace

TEST_CASE("KL over the square of the size of the errors approaches the predicted KL, with every draw and back end") {
  for (const auto& backend : {make_ref_backend(), make_cpu_backend()}) {
    for (const std::uint32_t offset : {0u, 100u, 200u, 4000000000u}) {
      const std::vector<CheckRow> rows = rows_of(*backend, predicted_kl_second_order().run, offset);
      REQUIRE(rows.size() == 4);
      for (const CheckRow& row : rows) {
        CHECK(row.verdict == Verdict::holds);
        CHECK(row.trials == 16);
        CHECK(row.measured > 0);
      }
      for (std::size_t i = 1; i < rows.size(); ++i) CHECK(rows[i].measured < rows[i - 1].measured / 5);
      CHECK(rows.back().measured < 5e-4);
    }
  }
}

TEST_CASE("every fault of predicted KL is found, by a wide margin") {
  const auto backend = make_cpu_backend();
  const std::vector<Mutant> mutants = predicted_kl_mutants();
  CHECK(mutants.size() == 6);
  for (const Mutant& mutant : mutants) {
    CAPTURE(mutant.id);
    const std::vector<CheckRow> rows = rows_of(*backend, mutant.run, 0);
    CHECK(rows.back().verdict == Verdict::violated);
    CHECK(rows.back().measured > 0.3);
  }
}

TEST_CASE("a predicted KL that is wrong by 0.2 % is found, and so is one that is no number") {
  const auto backend = make_cpu_backend();
  for (const double factor : {1.002, 0.998, double{NAN}, 0.0}) {
    const auto check = [factor](CheckContext& context) {
      check_predicted_kl(context, [factor](const KnownNetwork& network, Backend& of) {
        std::vector<double> kl = replayed_prediction(network, of);
        for (double& x : kl) x *= factor;
        return kl;
      });
    };
    CHECK(rows_of(*backend, check, 0).back().verdict == Verdict::violated);
  }
}
