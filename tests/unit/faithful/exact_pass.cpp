// SPDX-License-Identifier: Apache-2.0
// The exact pass agrees with its recomputation in fp64 on ordinary and extreme subjects; planted faults are found.
#include <kvbench/bounds/check/subject.hpp>
#include <kvbench/bounds/trials/paired_replay.hpp>
#include <kvbench/faithful/checks/checks.hpp>
#include <kvbench/faithful/mutants/mutant.hpp>

#include <unit/bounds/judged.hpp>
#include <unit/bounds/subjects.hpp>

using namespace kvbench;
using namespace kvbench::bounds;
using namespace kvbench::faithful;
using namespace kvbench::methods;
using namespace kvbench::testing;

namespace {

Judged checked(const Subject& subject, Backend& backend = cpu()) {
  return {subject, exact_noise_floor().run, 400, backend};
}

}  // namespace

TEST_CASE("the exact pass is exact attention within the bound, on every back end and stream") {
  for (const auto& backend : {make_ref_backend(), make_cpu_backend()}) {
    for (const SubjectSource& source : synthetic_subjects(8)) {
      CAPTURE(source.name);
      const Judged judged = checked(source.load(*backend), *backend);
      REQUIRE(judged.rows().size() == 2);
      CHECK(judged.none_violated());
      for (const CheckRow& row : judged.rows()) {
        CHECK(row.trials == 8);
        CHECK(row.measured > 0);
      }
    }
  }
}

TEST_CASE("subjects of one token, of zeros and of large logits give rows without a fault") {
  std::vector<Subject> subjects;
  subjects.push_back(make_subject({.name = "one", .keys = {1}, .values = {1}, .queries = {1}}, cpu()));
  subjects.push_back(make_subject({.name = "zero values", .keys = {1, 2}, .values = {0, 0}, .queries = {1}}, cpu()));
  subjects.push_back(
      make_subject({.name = "tiny", .keys = {1e-30f, 1}, .values = {1e-40f, 1e-39f}, .queries = {1e-20f}}, cpu()));
  subjects.push_back(
      make_subject({.name = "far", .keys = {-200, 0, 300}, .values = {1, 2, 3}, .queries = {1, 7}}, cpu()));
  subjects.push_back(make_subject(
      {.name = "more queries than tokens", .keys = {1, 2}, .values = {3, 4}, .queries = {1, 2, 3, 4, 5}}, cpu()));
  for (const Subject& subject : subjects) {
    CAPTURE(subject.source);
    const Judged judged = checked(subject);
    CHECK(judged.none_violated());
    for (const CheckRow& row : judged.rows()) CHECK(row.trials == subject.num_queries());
  }
}

TEST_CASE("queries whose logits round by more than the bound allows are left out") {
  const Subject subject =
      make_subject({.name = "huge", .keys = {-3e6f, 3e6f, 1}, .values = {1, 2, 3}, .queries = {1, 10}}, cpu());
  const Judged huge = checked(subject);
  CHECK(huge.rows()[0].verdict == Verdict::not_applicable);
  CHECK(huge.rows()[1].trials == 1);  // with a window of one token, the last query sees the last key alone
  const Judged none(make_subject({.name = "none", .keys = {1}, .values = {1}, .queries = {1}}, cpu()),
                    [](CheckContext& context) {
                      Subject empty = *context.subject;
                      empty.queries.clear();
                      context.subject = &empty;
                      CHECK_THROWS_AS(check_exact_pass(context, replayed_exact_pass), Unavailable);
                    });
  CHECK(none.rows().empty());
}

TEST_CASE("every fault of the exact pass is found, by a wide margin") {
  const Subject subject = subgen_subject(400);
  const std::vector<Mutant> mutants = exact_mutants();
  CHECK(mutants.size() == 4);
  for (const Mutant& mutant : mutants) {
    CAPTURE(mutant.id);
    const Judged judged(subject, mutant.run);
    CHECK(judged.verdict("with a sliding window") == Verdict::violated);
    CHECK(judged.rows().back().measured > 3);
    if (mutant.id != "exact.window") CHECK(judged.verdict("all tokens") == Verdict::violated);
  }
}

// The predicted KL of a replay is that of a known network to second order, with every draw; planted faults are found.

namespace {

std::vector<CheckRow> rows_of(Backend& backend, const RunCheck& check, std::uint32_t offset) {
  return judged_rows(nullptr, check, {.seed_offset = offset}, backend);
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
  const std::vector<Mutant> mutants = predicted_kl_mutants();
  CHECK(mutants.size() == 8);
  for (const Mutant& mutant : mutants) {
    CAPTURE(mutant.id);
    const std::vector<CheckRow> rows = rows_of(cpu(), mutant.run, 0);
    if (mutant.id == "predicted_kl.all-outside") {
      CHECK(rows.front().verdict == Verdict::violated);
      continue;
    }
    CHECK(rows.back().verdict == Verdict::violated);
    CHECK(rows.back().measured > (mutant.id == "predicted_kl.key-bias" ? 6 : 0.3));
  }
}

TEST_CASE("a predicted KL that is wrong by 0.2 % is found, and so is one that is no number") {
  for (const double factor : {1.002, 0.998, double{NAN}, 0.0}) {
    const auto check = [factor](CheckContext& context) {
      check_predicted_kl(context, [factor](const KnownNetwork& network, Backend& of) {
        std::vector<double> kl = replayed_prediction(network, of);
        for (double& x : kl) x *= factor;
        return kl;
      });
    };
    CHECK(rows_of(cpu(), check, 0).back().verdict == Verdict::violated);
  }
}

TEST_CASE("a key bias changes no exact output, and makes the KL of rounded keys many times the predicted one") {
  const replay::MethodChoice rounding = method_choice("int", {{"bits", "4"}, {"value_bits", "8"}, {"group", "0"}});
  const KnownNetwork plain = confident_network(3, 0), biased = confident_network(3, 100);
  const replay::ReplayResults exact = replay_network(plain, method_choice("exact"), cpu()),
                              same = replay_network(biased, method_choice("exact"), cpu()),
                              rounded = replay_network(plain, rounding, cpu()),
                              wrong = replay_network(biased, rounding, cpu());
  const auto farthest = [](const replay::ReplayResults& one, const replay::ReplayResults& other, Index layer) {
    float most = 0;
    for (std::size_t h = 0; h < one.heads.size(); ++h) {
      if (one.heads[h].layer != layer) continue;
      const std::vector<float>&a = one.heads[h].results[0].raw.value().output,
            &b = other.heads[h].results[0].raw.value().output;
      for (std::size_t i = 0; i < a.size(); ++i) most = std::max(most, std::abs(a[i] - b[i]));
    }
    return most;
  };
  for (const Index layer : {0, 1}) CHECK(farthest(exact, same, layer) < 1e-4F);
  CHECK(farthest(exact, rounded, 0) < 0.3F);
  CHECK(farthest(exact, wrong, 0) > 0.6F);
  CHECK(farthest(rounded, wrong, 1) == 0);  // the bias is in layer 0 alone
}

TEST_CASE("rows of rounded keys are outside with a key bias and not without one, with every draw") {
  for (const std::uint32_t offset : {0u, 100u, 200u, 4000000000u}) {
    const std::vector<CheckRow> rows = rows_of(cpu(), predicted_kl_region().run, offset);
    REQUIRE(rows.size() == 2);
    for (const CheckRow& row : rows) {
      CHECK(row.verdict == Verdict::holds);
      CHECK(row.trials == 8);
    }
    CHECK(rows[0].measured < 1.5);
  }
}
