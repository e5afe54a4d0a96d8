// SPDX-License-Identifier: Apache-2.0
// What the model measured, beside predictions of the same kind: ratios by hand.
#include <kvbench/replay/records/anchors.hpp>

#include <cmath>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <kvbench/replay/records/record.hpp>

using namespace kvbench;
using namespace kvbench::replay;
using doctest::Approx;

namespace {

ReplayFrame::Prompt prompt_of(std::vector<trace::Anchor> anchors) {
  return {.id = "0", .protocol = Protocol::decode, .scored_tokens = 1, .anchors = std::move(anchors), .anchored = true};
}

/// A method on one text and one layer, whose prediction is (1 + 1) / 2 / 2 = .5 times `scale`.
ReplayResults results_of(const std::string& method, const std::string& params, std::vector<trace::Anchor> anchors,
                         double scale = 0.01) {
  ReplayResults results;
  results.model_layers = 1;
  results.prompts = {prompt_of(std::move(anchors))};
  results.budgets = {Budget::parse("25%mem")};
  results.methods = {{.name = method, .params = params}};
  results.configurations = {{}};
  HeadResult head{.place = {0, 0, 0}, .layer = 0, .positions = {8}};
  ConfigurationResult& result = head.results.emplace_back();
  result.metrics.emplace_back().fill(0.1F);
  result.rel_err_fro = {0};
  const double c = std::sqrt(scale);
  result.probe_sums = {c, -c};
  results.heads.push_back(std::move(head));
  return results;
}

Record row_of(const ReplayResults& results) { return summarize(results, Grain::trace).front(); }

}  // namespace

TEST_CASE("kinds of changes are those of families of methods") {
  CHECK(kind_of("q4_0") == ChangeKind::rounded);
  CHECK(kind_of("kivi2") == ChangeKind::rounded);
  CHECK(kind_of("h2o") == ChangeKind::dropped);
  CHECK(kind_of("adakv(snapkv)") == ChangeKind::dropped);
  CHECK(kind_of("bsm") == ChangeKind::dropped);
  CHECK(kind_of("h2o+q5_1") == ChangeKind::both);
  CHECK(kind_of("plan:p.toml") == ChangeKind::both);
}

// Ratios of sums: h2o (.02 + .04) / (.01 + .02) = 2, snapkv .08 / .01 = 8; their geometric mean is 4. The logarithms
// differ by ln 4 = 1.386, of which the standard deviation is .980; for another configuration times sqrt(1 + 1/2).
TEST_CASE("the ratio of a kind is the geometric mean over its anchors, of all layers and with small predictions") {
  const std::vector<ReplayFrame::Prompt> prompts = {prompt_of({{"h2o", "25%mem", {}, 0.02, 0.01},
                                                               {"snapkv", "25%mem", {}, 0.08, 0.01},
                                                               {"h2o", "12.5%mem", {}, 9, 0.3},  // large
                                                               {"h2o", "50%mem", {}, 9, NAN},    // outside the region
                                                               {"h2o", "50%mem", 3, 9, 0.01},    // one layer
                                                               {"h2o+q5_1", "25%mem", {}, 9, 0.01},  // another kind
                                                               {"q4_0", "", {}, 9, 0.01}}),
                                                    prompt_of({{"h2o", "25%mem", {}, 0.04, 0.02}})};
  const AnchorRatio ratio = anchor_ratio(prompts, ChangeKind::dropped);
  CHECK(ratio.anchors == 2);
  CHECK(ratio.factor == Approx(4));
  CHECK(ratio.spread == Approx(0.9803 * std::sqrt(1.5)).epsilon(1e-3));
  CHECK(failure_text(ratio) == "measured 4 times the prediction");
  CHECK(anchor_ratio(prompts, ChangeKind::both).anchors == 1);
  CHECK(anchor_ratio({}, ChangeKind::rounded).anchors == 0);
  CHECK(failure_text({.anchors = 2, .factor = 2.9}).empty());
  CHECK(failure_text({.anchors = 2, .factor = 0.3}) == "measured 0.3 times the prediction");
}

TEST_CASE("a prediction is corrected and widened by anchors of its kind, or by a failing kind outside") {
  const Record plain = row_of(results_of("tova", "", {}));
  CHECK(plain.kl.mean == Approx(0.005));
  const Record corrected =
      row_of(results_of("tova", "", {{"h2o", "25%mem", {}, 0.02, 0.01}, {"snapkv", "25%mem", {}, 0.02, 0.01}}));
  CHECK(corrected.kl.mean == Approx(0.01));
  CHECK(corrected.kl.interval.lo == Approx(2 * plain.kl.interval.lo));
  CHECK(corrected.kl.about == "all layers; times 2 by 2 anchors");
  const Record widened =
      row_of(results_of("tova", "", {{"h2o", "25%mem", {}, 0.01, 0.01}, {"snapkv", "25%mem", {}, 0.04, 0.01}}));
  CHECK(widened.kl.mean == Approx(0.01));
  const double half = std::log(plain.kl.interval.hi / plain.kl.mean), more = 1.96 * 0.9803 * std::sqrt(1.5);
  CHECK(std::log(widened.kl.interval.hi / widened.kl.mean) == Approx(std::hypot(half, more)).epsilon(1e-3));
  const Record failed =
      row_of(results_of("tova", "", {{"h2o", "25%mem", {}, 0.05, 0.01}, {"snapkv", "25%mem", {}, 0.05, 0.01}}));
  CHECK(failed.kl.outside == "anchors, measured 5 times the prediction");
  CHECK(failed.kl.mean == Approx(0.005));
  const Record other =
      row_of(results_of("q8_0", "", {{"h2o", "25%mem", {}, 0.05, 0.01}, {"snapkv", "25%mem", {}, 0.05, 0.01}}));
  CHECK(other.kl.about == "all layers");
}

TEST_CASE("what the model measured stands beside the prediction of the same configuration") {
  const std::vector<trace::Anchor> anchors = {{"snapkv[window=16]", "25%mem", {}, 0.03, 0.01},
                                              {"snapkv", "50%mem", {}, 0.02, 0.01},
                                              {"q4_0", "", {}, 0.04, 0.01},
                                              {"tova", "25%mem", 0, 0.05, 0.01}};
  CHECK(row_of(results_of("snapkv", "window=16", anchors)).kl.measured == Approx(0.03));
  CHECK(std::isnan(row_of(results_of("snapkv", "", anchors)).kl.measured));  // at another budget
  CHECK(row_of(results_of("q4_0", "", anchors)).kl.measured == Approx(0.04));
  CHECK(std::isnan(row_of(results_of("tova", "", anchors)).kl.measured));  // in one layer
  ReplayResults protected_tokens = results_of("q4_0", "", anchors);
  protected_tokens.prompts[0].anchored = false;
  CHECK(std::isnan(row_of(protected_tokens).kl.measured));
}

TEST_CASE("anchors have the names of rows, and no budget where a method has one size") {
  const auto named = [](const char* method, const char* budget) {
    return named_as_rows({.version = "0", .list = {{method, budget, {}, 1, 1}}}).front();
  };
  CHECK(named("snapkv[window=16]", "25%mem").method == "snapkv[window=16]");
  CHECK(named("snapkv[window=16]", "25%mem").budget == "25%mem");
  CHECK(named("snapkv[window=16,kernel=5]", "25%mem").method == named("snapkv[kernel=5,window=16]", "25%mem").method);
  CHECK(named("q4_0", "100%mem").budget.empty());
  CHECK(named("int", "25%mem").budget == "25%mem");  // which chooses its bits
  CHECK(named("nothing[a=1]", "25%mem").method == "nothing[a=1]");
  CHECK(named("snapkv[", "25%mem").method == "snapkv[");
}
