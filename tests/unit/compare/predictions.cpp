// SPDX-License-Identifier: Apache-2.0
#include <kvbench/compare/predictions.hpp>

#include <doctest/doctest.h>

#include <kvbench/compare/paper_claim.hpp>
#include <support/messages.hpp>

using namespace kvbench;
using namespace kvbench::compare;
using namespace kvbench::testing;
using doctest::Approx;
using Sums = std::vector<double>;

namespace {

/// Results of the methods x and y on one kv head with two query heads, of a model with 8 layers; their sums of probes
/// are those of the head, x's as they are and y's with a factor. The two scored tokens are those of every text.
class Probed : public QueryResults {
 public:
  explicit Probed(double factor) : factor_(factor) {
    configurations_ = {{.method = "x", .budget = Budget::parse("25%")},
                       {.method = "y", .budget = Budget::parse("25%")}};
  }
  Probed& with(const std::string& run, const std::string& prompt, std::int64_t layer, const Sums& sums) {
    for (Index head = 0; head < 2; ++head) {
      places_.push_back({.run = run,
                         .trace = "t.h5",
                         .sha256 = "abc",
                         .prompt = prompt,
                         .layer = layer,
                         .model_layers = 8,
                         .query_head = head,
                         .positions = {5}});
      sums_.push_back(sums);
    }
    return *this;
  }
  const std::string& path() const override { return path_; }
  const std::vector<QueryPlace>& places() const override { return places_; }
  const std::vector<QueryConfiguration>& configurations() const override { return configurations_; }
  std::optional<QueryValues> read(std::size_t place, std::size_t /*configuration*/) const override {
    if (places_[place].layer == ended_layer_)
      return QueryValues{.status = replay::Status::infeasible, .reason = "dear", .dense = kept_whole_};
    return QueryValues{
        .bytes_held = 7, .bytes_read = 7, .values = places_[place].layer == rough_layer_ ? rough_ : Sums{0}};
  }
  /// Errors relative to the stream of a layer, at the queries of its heads.
  Probed& with_errors(std::int64_t layer, const Sums& errors) {
    rough_layer_ = layer, rough_ = errors;
    return *this;
  }
  /// The methods have no results in this layer.
  Probed& without(std::int64_t layer, bool kept_whole) {
    ended_layer_ = layer, kept_whole_ = kept_whole;
    return *this;
  }
  Sums probe_sums(std::size_t place, std::size_t configuration) const override {
    Sums sums = places_[place].layer == ended_layer_ ? Sums() : sums_[place];
    for (double& c : sums) c *= configuration == 0 ? 1 : factor_;
    return sums;
  }
  Index scored_tokens(std::size_t place) const override { return sums_[place].empty() ? 0 : 2; }
  double anchor_factor(std::size_t /*place*/, replay::ChangeKind kind) const override {
    return kind == replay::ChangeKind::rounded ? rounded_ : 1;
  }
  /// The methods are these, and the anchors of the trace that round have this ratio.
  Probed& named(const std::string& x, const std::string& y, double rounded) {
    configurations_[0].method = x, configurations_[1].method = y, rounded_ = rounded;
    return *this;
  }

 private:
  double factor_, rounded_ = 1;
  std::int64_t ended_layer_ = -1;
  bool kept_whole_ = false;
  std::int64_t rough_layer_ = -1;
  Sums rough_;
  std::string path_ = "made";
  std::vector<QueryPlace> places_;
  std::vector<QueryConfiguration> configurations_;
  std::vector<Sums> sums_;
};

ClaimResult judged(const Probed& results) {
  const Predictions predictions(std::make_shared<Probed>(results), Span::all);
  return test_claim({.text = "c",
                     .metric = replay::predicted_kl_info,
                     .relations = {{.kind = Relation::Kind::lower, .a = "x", .b = "y"}}},
                    {&predictions});
}

}  // namespace

// Run a compresses layers 0 and 1, neighbours: each probe gives (sum over layers)^2 / (2 * 2 tokens). Run b compresses
// 1 and 5, one of each half: 8 layers of 2, so that each probe of a layer gives 8 c^2 / 4, of which the mean counts.
TEST_CASE("layers of a run are a sample or stand for themselves, whatever those of other runs are") {
  auto made = std::make_shared<Probed>(2);
  made->with("a", "0", 0, {1, 3}).with("a", "0", 1, {1, -1}).with("b", "0", 1, {1, 2}).with("b", "0", 5, {0, 1});
  made->with("a", "1", 0, {});
  const Predictions predictions(made, Span::all);
  REQUIRE(predictions.places().size() == 2);
  CHECK(predictions.places()[0].run == "a");
  CHECK(predictions.read(0, 0)->values == Sums{1, 1});
  CHECK(predictions.read(0, 1)->values == Sums{4, 4});
  CHECK(predictions.read(1, 0)->values == Sums{2, 8, 0, 2});
  const Predictions by_layer(made, Span::layer);
  REQUIRE(by_layer.places().size() == 4);
  CHECK(by_layer.read(0, 0)->values == Sums{0.25, 2.25});
}

TEST_CASE("a text with a layer of which no error is known has no prediction, one with a layer that is whole has") {
  for (const bool whole : {false, true}) {
    auto made = std::make_shared<Probed>(2);
    made->with("", "0", 0, {1, 3}).with("", "0", 1, {1, -1}).without(1, whole);
    const auto values = Predictions(made, Span::all).read(0, 0);
    CHECK(values->status == (whole ? replay::Status::ok : replay::Status::infeasible));
    CHECK(values->values == (whole ? Sums{0.25, 2.25} : Sums{}));
  }
}

// The root mean square of 0.1 and 0.7 is 0.5.
TEST_CASE("a text with a layer whose errors are large relative to the stream cannot be predicted") {
  for (const Sums& errors : {Sums{0.1, 0.7}, Sums{0.1, 0.3}, Sums{std::nan(""), std::nan("")}}) {
    auto made = std::make_shared<Probed>(2);
    made->with("", "0", 0, {1, 3}).with("", "0", 1, {1, -1}).with_errors(1, errors);
    const auto values = Predictions(made, Span::all).read(0, 0);
    const bool outside = errors[1] == 0.7;
    CHECK(values->status == (outside ? replay::Status::skipped : replay::Status::ok));
    CHECK(values->reason ==
          (outside ? "cannot be predicted (layer 1, error 0.5 of the stream): measure it in the model" : ""));
    CHECK(values->values == (outside ? Sums{} : Sums{1, 1}));
  }
}

// Layers 1 and 5 of 8 stand for the model, layer 0 alone does not. Anchors that round were measured at 2.5 times what
// was predicted, so that q8_0 is; at 4 times nothing that rounds is predicted. h2o drops tokens.
TEST_CASE("predictions over all layers are those of rows: times the anchors of their kind") {
  for (const double ratio : {2.5, 4.0}) {
    auto made = std::make_shared<Probed>(1);
    made->named("q8_0", "h2o", ratio).with("", "0", 1, {1, 2}).with("", "0", 5, {0, 1});
    made->with("alone", "0", 0, {1, 3});
    const Predictions predictions(made, Span::all);
    const auto q8_0 = predictions.read(0, 0);
    CHECK(q8_0->values == (ratio == 2.5 ? Sums{5, 20, 0, 5} : Sums{}));
    CHECK(q8_0->reason ==
          (ratio == 2.5 ? ""
                        : "cannot be predicted (anchors, measured 4 times the prediction): measure it in the model"));
    CHECK(predictions.read(0, 1)->values == Sums{2, 8, 0, 2});
    CHECK(predictions.read(1, 0)->values == Sums{0.25, 2.25});
    CHECK(Predictions(made, Span::layer).read(0, 0)->values == Sums{0.25, 1});
  }
}

TEST_CASE("a plan on a sample of the layers has no prediction, because it treats the others otherwise") {
  auto made = std::make_shared<Probed>(1);
  made->named("plan:p.toml", "h2o", 1).with("", "0", 1, {1, 2}).with("", "0", 5, {0, 1});
  const Predictions predictions(made, Span::all);
  CHECK(predictions.read(0, 0)->status == replay::Status::skipped);
  CHECK(contains(predictions.read(0, 0)->reason, "record all layers"));
  CHECK(predictions.read(0, 1)->values == Sums{2, 8, 0, 2});
}

// c of y is 3 times that of x on each of three texts, so that KL is 9 times as large, and c of the texts differs.
TEST_CASE("claims by predicted KL are judged over texts") {
  Probed three(3);
  three.with("", "0", 0, {0.1, 0.2}).with("", "1", 0, {0.3, 0.4}).with("", "2", 0, {0.05, 0.1});
  const ClaimResult result = judged(three);
  REQUIRE(result.results.size() == 1);
  CHECK(result.verdict == Verdict::supported);
  CHECK(result.results[0].comparison.tested_over == "3 texts");
  CHECK(result.results[0].comparison.over_places == Approx(1.0 / 9));
  CHECK(result.results[0].comparison.test.mean_a == Approx((1 + 4 + 9 + 16 + 0.25 + 1) / 6 / 4 / 100));
  CHECK(contains(verdict_text(result), "1 test of kl_predicted over 3 texts"));
}

// The same with c ten times as large: 1.3 and 11.7 nats, where ranks are uncertain.
TEST_CASE("claims about two predictions that are both large are undecided") {
  Probed large(3);
  large.with("", "0", 0, {1, 2}).with("", "1", 0, {3, 4}).with("", "2", 0, {0.5, 1});
  const ClaimResult result = judged(large);
  CHECK(result.verdict == Verdict::undecided);
  CHECK(contains(result.results.at(0).comparison.reason, "above 0.15 nats"));
  Probed one_large(30);  // .013 and 11.7
  one_large.with("", "0", 0, {0.1, 0.2}).with("", "1", 0, {0.3, 0.4}).with("", "2", 0, {0.05, 0.1});
  CHECK(judged(one_large).verdict == Verdict::supported);
  CHECK(contains(verdict_text(judged(one_large)), ", 1 of 1 with a prediction above 0.15 nats\n"));
}

TEST_CASE("texts that cannot be predicted are counted as texts") {
  Probed one_rough(3);
  one_rough.with("", "0", 0, {0.1, 0.2}).with("", "1", 0, {0.3, 0.4}).with("", "2", 0, {0.05, 0.1});
  one_rough.with("", "3", 1, {0.1, 0.2}).with_errors(1, {0.7, 0.7});
  CHECK(contains(judged(one_rough).results.at(0).comparison.reason, "without 1 of 4 texts: x skipped: cannot be"));
}

TEST_CASE("without probes a claim by predicted KL is untestable") {
  Probed none(3);
  none.with("", "0", 0, {}).with("", "1", 0, {});
  const ClaimResult result = judged(none);
  CHECK(result.verdict == Verdict::untestable);
  REQUIRE(result.results.size() == 1);
  CHECK(contains(result.results[0].comparison.reason, "no text has probes"));
}
