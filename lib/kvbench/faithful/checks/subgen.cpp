// SPDX-License-Identifier: Apache-2.0
// SubGen (arXiv 2402.06082), Algorithm 1 as a whole: after the prompt and after each decoded token the method holds the
// tokens and the weights that the listing gives from the same draws. docs/theory/subgen.algorithm1.md.
#include <kvbench/faithful/checks/checks.hpp>

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace kvbench::faithful {
namespace {

constexpr Index most_compared = 512;  // tokens of a stream
constexpr Index few_decoded = 48, many_decoded = 96;
constexpr Index median_keys = 48;  // of which all pairs are compared

/// A radius that the method's fp32 parameter holds exactly.
double fp32_radius(double radius) { return double{static_cast<float>(radius)}; }

/// r of Theorem 1 for these queries [m, d].
double query_radius(std::span<const float> queries, const bounds::Subject& subject) {
  const auto d = static_cast<std::size_t>(subject.d());
  double longest = 0;
  for (std::size_t i = 0; i + d <= queries.size(); i += d)
    longest = std::max(longest, bounds::squared_norm(queries.subspan(i, d)));
  return double{subject.head.scale} * std::sqrt(longest);
}

/// The median distance of two of the first keys; 1 where most keys are equal.
double median_distance(const bounds::Subject& subject, Index tokens) {
  const Index count = std::min(median_keys, tokens);
  std::vector<double> distances;
  for (Index a = 0; a < count; ++a) {
    for (Index b = 0; b < a; ++b) {
      distances.push_back(bounds::squared_distance(subject.key(a * tokens / count), subject.key(b * tokens / count)));
    }
  }
  if (distances.empty()) return 1;
  const auto middle = distances.begin() + std::ssize(distances) / 2;
  std::ranges::nth_element(distances, middle);
  return *middle > 0 ? std::sqrt(*middle) : 1;
}

/// The first of a few radii from `radius` on at which the rounding of fp32 decides nothing about the first tokens.
double clear_radius(const bounds::Subject& subject, Index tokens, double radius) {
  for (int tried = 0; tried < 4; ++tried, radius *= 1.01) {
    if (subgen_clusters(subject, tokens, tokens, fp32_radius(radius), {}).decided == tokens) break;
  }
  return fp32_radius(radius);
}

class SubgenCases {
 public:
  explicit SubgenCases(const bounds::Subject& subject)
      : subject_(subject), n_(std::min(subject.tokens(), most_compared)) {}

  void add_given(const std::string& name, double radius, Index t, Index s) {
    const SubgenSizes sizes{.t = t, .s = s, .delta = clear_radius(subject_, n_, radius)};
    for (const std::uint32_t seed : {0u, 1u}) {
      cases_.push_back(
          {.part = fmt::format("{}, long prompt", name), .plan = split(few_decoded, seed), .sizes = sizes});
    }
    // Here decoded keys open clusters.
    cases_.push_back({.part = fmt::format("{}, short prompt", name), .plan = opening(n_ / 8, 2), .sizes = sizes});
    cases_.push_back({.part = fmt::format("{}, no prompt", name), .plan = opening(0, 3), .sizes = sizes});
  }

  /// The method divides `delta_r` by r = scale * max |observed q| and obtains about this radius.
  void add_from_queries(double radius, Backend& backend) {
    const Buffer<const float>& observed = subject_.head.observed;
    if (!observed.present() || observed.rows() == 0) return;
    const double r = query_radius(backend.read(observed), subject_);
    if (!(r > 0)) return;
    const double delta_r = clear_radius(subject_, n_, radius) * r;
    cases_.push_back({.part = "delta r of the observed queries",
                      .plan = split(few_decoded, 4),
                      .sizes = {.t = 2, .s = 5, .delta = fp32_radius(delta_r / r)},
                      .radius = SubgenCase::Radius::from_queries,
                      .delta_r = delta_r});
  }

  void add_from_budget() {
    for (const std::uint32_t seed : {0u, 1u}) {
      const bounds::StreamPlan plan = split(few_decoded, seed);
      add_budget("radius of the budget", plan, plan.prompt);
    }
    const bounds::StreamPlan stream = opening(0, 5);
    add_budget("radius of the budget, no prompt", stream, stream.appended);  // chosen with hindsight
  }

  std::vector<SubgenCase> take() { return std::move(cases_); }
  Index tokens() const { return n_; }

 private:
  bounds::StreamPlan split(Index decoded, std::uint32_t seed) const {
    const Index appended = std::min(decoded, n_ - 1);
    return {.prompt = n_ - appended, .appended = appended, .budget = std::max<Index>(1, n_ / 4), .seed = seed};
  }
  bounds::StreamPlan opening(Index prompt, std::uint32_t seed) const {
    const Index appended = std::min(many_decoded, n_ - prompt);
    return {
        .prompt = prompt, .appended = appended, .budget = std::max<Index>(1, (prompt + appended) / 4), .seed = seed};
  }
  /// The method's defaults t = 4 and s = B / 2; `searched`: the tokens from which the radius is chosen.
  void add_budget(const std::string& name, const bounds::StreamPlan& plan, Index searched) {
    SubgenCase made{.part = name, .plan = plan, .sizes = {.s = std::max<Index>(1, plan.budget / 2)}};
    made.radius = SubgenCase::Radius::from_budget;
    const Index most = subgen_most_clusters(subject_, made.sizes, plan.budget);
    if (most == 0) return;
    const SubgenRadius radius = subgen_budget_radius(subject_, searched, most);
    made.sizes.delta = radius.delta;
    made.decided = radius.decided;
    cases_.push_back(std::move(made));
  }

  const bounds::Subject& subject_;
  Index n_;
  std::vector<SubgenCase> cases_;
};

/// The clusters that the stream led to, which show how much the case tests.
std::string clusters_text(const bounds::Subject& subject, const SubgenCase& run) {
  const Index end = run.plan.prompt + run.plan.appended;
  const std::vector<TokenId> opened = subgen_clusters(subject, run.plan.prompt, end, run.sizes.delta, {}).opened_by;
  const auto late = std::ranges::count_if(opened, [&](TokenId token) { return token >= run.plan.prompt; });
  return fmt::format("; {} clusters, {} opened by decoded keys", opened.size(), late);
}

void run_subgen_algorithm1(bounds::CheckContext& context) {
  check_subgen_algorithm(context, [&](const SubgenCase& run) {
    return observe_stream(*context.subject, run.plan, bounds::registered_method("subgen", run.settings()),
                          context.backend);
  });
}

}  // namespace

std::vector<methods::Assignment> SubgenCase::settings() const {
  if (radius == Radius::from_budget) return {};
  std::vector<methods::Assignment> list = {{"t", fmt::format("{}", sizes.t)}, {"s", fmt::format("{}", sizes.s)}};
  if (radius == Radius::given) list.push_back({"delta", fmt::format("{}", sizes.delta)});
  if (radius == Radius::from_queries) list.push_back({"delta_r", fmt::format("{}", delta_r)});
  return list;
}

std::string SubgenCase::text() const {
  return fmt::format("{};t={};s={};delta={:.4g}{}", plan.text(), sizes.t, sizes.s, sizes.delta,
                     radius == Radius::from_queries ? fmt::format(";delta_r={:.4g}", delta_r) : "");
}

std::vector<SubgenCase> subgen_cases(const bounds::Subject& subject, Backend& backend) {
  if (subject.tokens() == 0) throw methods::Unavailable("the subject has no tokens");
  SubgenCases cases(subject);
  const double r = query_radius(subject.queries, subject), median = median_distance(subject, cases.tokens());
  if (r > 0) cases.add_given("delta r = 1/2", 0.5 / r, 4, std::max<Index>(1, cases.tokens() / 16));
  cases.add_given("radius 3/4 of the median distance", 0.75 * median, 3, 7);
  cases.add_given("radius the median distance", median, 1, 1);
  cases.add_from_queries(0.75 * median, backend);
  cases.add_from_budget();
  return cases.take();
}

void check_subgen_algorithm(bounds::CheckContext& context, const SubgenStream& stream) {
  for (const SubgenCase& run : subgen_cases(*context.subject, context.backend)) {
    context.poll();
    OracleRun expected = subgen_oracle(*context.subject, run.plan, run.sizes);
    if (!run.decided) expected.decided = 0;
    add_oracle_row(context, run.part, run.text(), stream(run), expected);
    context.rows.back().text += clusters_text(*context.subject, run);
  }
}

bounds::Check subgen_algorithm1() {
  return {.id = "subgen.algorithm1",
          .paper = "SubGen, arXiv 2402.06082, Algorithm 1",
          .statement =
              "at every time of a stream the method holds the tokens and weights of the listing, from the same draws",
          .run = run_subgen_algorithm1};
}

}  // namespace kvbench::faithful
