// SPDX-License-Identifier: Apache-2.0
// BalanceKV (arXiv 2502.07861), Algorithm 1, lines 2 to 9: values are sorted into buckets of norms that double, one
// MergeAndReduce each, and buckets with 2^i <= eps / (2 n) e^{-a r^2} v_max are erased.
//   balancekv.buckets       the method holds the buckets that follow from the norms; values of equal norm need one
//                           bucket
//   balancekv.bucket_count  log2(n) buckets suffice (the comment of line 2)
// docs/theory/balancekv.buckets.md.
#include <kvbench/bounds/balancekv/checks.hpp>

#include <algorithm>
#include <cmath>
#include <set>

#include <kvbench/bounds/check/vectors.hpp>
#include <kvbench/bounds/trials/contrast.hpp>

namespace kvbench::bounds {
namespace {

constexpr Index bucketed_tokens = 256;
constexpr double bucket_eps = 0.1, fp32_exponent = 1e-5;

MethodUnderTest streamed_balancekv() {
  return registered_method("balancekv",
                           {{"mode", "stream"}, {"t", "16"}, {"rounds", "0"}, {"eps", fmt::to_string(bucket_eps)}});
}

/// The same keys with values of one norm, not a power of two.
Subject with_equal_norms(const Subject& subject, Index n, Backend& backend) {
  const auto d = static_cast<std::size_t>(subject.d());
  std::vector<float> values;
  for (Index i = 0; i < n; ++i) {
    const double length = std::sqrt(squared_norm(subject.value(i)));
    for (std::size_t c = 0; c < subject.value(i).size(); ++c) {
      const double unit = length > 0 ? double{subject.value(i)[c]} / length : (c == 0 ? 1 : 0);
      values.push_back(static_cast<float>(1.5 * unit));
    }
  }
  std::vector<float> keys(subject.keys.begin(),
                          subject.keys.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(n) * d));
  return make_subject({.name = "equal norms",
                       .keys = keys,
                       .values = values,
                       .queries = subject.queries,
                       .d = subject.d(),
                       .dv = subject.dv(),
                       .scale = subject.head.scale},
                      backend);
}

void add_bucket_row(CheckContext& context, const char* part, Index needed, Index held) {
  const Statement statement{part, fmt::format("n={};eps={}", bucketed_tokens, bucket_eps)};
  if (needed < 0)
    context.not_tested(CheckKind::exact, statement, "a norm is as near to a power of two as the rounding of fp32");
  else
    context.exact(statement, needed != held, 1,
                  fmt::format("the method holds {} buckets, the norms need {}", held, needed));
}

void run_bucket_count(CheckContext& context) {
  std::vector<double> differences;
  Index fewest = std::numeric_limits<Index>::max(), most = 0;
  for (const SubjectSource& source : trace_subjects(*context.reader, {}, {}, 1)) {
    context.poll();
    const Subject subject = source.load(context.backend);
    const Index needed = buckets_needed(subject, subject.tokens(), bucket_eps);
    if (needed < 0) continue;
    fewest = std::min(fewest, needed), most = std::max(most, needed);
    differences.push_back(std::log2(static_cast<double>(subject.tokens())) - static_cast<double>(needed));
  }
  CheckRow& row =
      add_claim(context, {"log2(n) buckets suffice", fmt::format("unit=head of a prompt;eps={}", bucket_eps)},
                contrast(differences), "log2(n) less the number of buckets");
  row.text += fmt::format("; {} to {} buckets; the worst case is log2(2 n e^(a r^2) / eps), which grows with the keys",
                          fewest, most);
}

}  // namespace

Index buckets_needed(const Subject& subject, Index n, double eps) {
  double r2 = 0, largest = 0;
  std::set<int> buckets;
  for (Index i = 0; i < n; ++i) {
    r2 = std::max(r2, squared_norm(subject.key(i)));
    const double norm = std::sqrt(squared_norm(subject.value(i)));
    largest = std::max(largest, norm);
    if (norm == 0) continue;
    const double exponent = std::log2(norm);
    if (std::abs(exponent - std::round(exponent)) < fp32_exponent) return -1;
    buckets.insert(static_cast<int>(std::ceil(exponent)));
  }
  // In logarithms: e^{-a r^2} underflows for long keys.
  const double cut = std::log2(eps / (2 * static_cast<double>(n))) - double{subject.head.scale} * r2 / std::log(2.0) +
                     std::log2(largest);
  return std::ranges::count_if(buckets, [&](int i) { return i > cut; });
}

Index buckets_held(const Subject& subject, Index n, const MethodUnderTest& method, Backend& backend) {
  // N and D hold each token once: with one level, at most 2 n tokens.
  for (const methods::Note& note : method(first_context(subject.head, n), backend)(2 * n, 0)->notes()) {
    if (note.text.find("buckets") != std::string::npos) return static_cast<Index>(note.count);
  }
  return -1;
}

void check_buckets(CheckContext& context, const MethodUnderTest& method) {
  const Subject& subject = *context.subject;
  const Index n = std::min(subject.tokens(), bucketed_tokens);
  add_bucket_row(context, "the buckets follow from the norms", buckets_needed(subject, n, bucket_eps),
                 buckets_held(subject, n, method, context.backend));
  const Subject equal = with_equal_norms(subject, n, context.backend);
  add_bucket_row(context, "values of equal norm need one bucket", 1, buckets_held(equal, n, method, context.backend));
}

Check balancekv_buckets() {
  return {.id = "balancekv.buckets",
          .paper = "BalanceKV, arXiv 2502.07861, Algorithm 1, lines 2 to 9",
          .statement = "there is one instance per bucket of value norms, and a single one where the norms are equal",
          .run = [](CheckContext& context) { check_buckets(context, streamed_balancekv()); }};
}

Check balancekv_bucket_count() {
  return {.id = "balancekv.bucket_count",
          .paper = "BalanceKV, arXiv 2502.07861, Algorithm 1, line 2",
          .statement = "log n buckets of value norms suffice",
          .scope = Scope::trace,
          .run = run_bucket_count};
}

}  // namespace kvbench::bounds
