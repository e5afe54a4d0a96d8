// SPDX-License-Identifier: Apache-2.0
#include <kvbench/eval/growth.hpp>

#include <algorithm>
#include <cmath>

#include <fmt/ranges.h>

#include <kvbench/core/enumeration.hpp>

namespace kvbench::eval {
namespace {

bool is_at_floor(const KlByDocument& kl) {
  return std::ranges::any_of(kl, [](const auto& one) { return one.second < kl_floor; });
}

/// ln KL at all of the lengths, by document; those without a finite KL at one of them are left out.
std::vector<std::vector<double>> complete(const KlByLength& kl, const std::vector<Index>& lengths) {
  std::vector<std::vector<double>> out;
  for (const auto& [document, first] : kl.at(lengths.front())) {
    std::vector<double> logarithms;
    for (const Index length : lengths) {
      const KlByDocument& at = kl.at(length);
      const auto found = at.find(document);
      if (found != at.end() && std::isfinite(found->second)) logarithms.push_back(std::log(found->second));
    }
    if (logarithms.size() == lengths.size()) out.push_back(std::move(logarithms));
  }
  return out;
}

/// The exponential of the mean, and of its interval.
Estimate exp_of_mean(const std::vector<double>& logarithms) {
  const Interval ends = logarithms.size() < 2 ? Interval{NAN, NAN} : student_interval(logarithms);
  return {std::exp(mean(logarithms)), std::exp(ends.lo), std::exp(ends.hi)};
}

Growing verdict_of(const Estimate& factor) {
  if (factor.lo > 1) return Growing::grows;
  if (factor.hi < 1) return Growing::shrinks;
  return factor.hi <= growth_margin ? Growing::does_not_grow : Growing::cannot_tell;  // false for NaN
}

}  // namespace

std::string_view name_of(Growing growing) {
  constexpr std::string_view names[] = {"grows", "shrinks", "does not grow", "cannot tell"};
  return name_in(names, growing);
}

Estimate geometric_mean(const KlByDocument& kl) {
  std::vector<double> logarithms;
  for (const auto& [document, value] : kl) logarithms.push_back(std::log(value));
  return exp_of_mean(logarithms);
}

Growth growth_of(const KlByLength& kl) {
  Growth out;
  for (const auto& [length, documents] : kl) (is_at_floor(documents) ? out.at_floor : out.lengths).push_back(length);
  if (out.lengths.size() < 2) {
    out.reason = out.at_floor.empty() ? "fewer than two lengths"
                                      : fmt::format("KL is below {:g} nats, where rounding may decide, at {} tokens",
                                                    kl_floor, fmt::join(out.at_floor, ", "));
    return out;
  }
  const std::vector<std::vector<double>> documents = complete(kl, out.lengths);
  out.documents = std::ssize(documents);
  if (documents.size() < 2)
    out.reason = documents.empty() ? "no document has all lengths" : "one document, and an interval takes two";
  if (documents.empty()) return out;
  std::vector<double> doublings, slopes;
  for (const Index length : out.lengths) doublings.push_back(std::log2(static_cast<double>(length)));
  for (const std::vector<double>& one : documents) slopes.push_back(slope(doublings, one));
  for (std::size_t l = 0; l < out.lengths.size(); ++l) {
    std::vector<double> at;
    for (const std::vector<double>& one : documents) at.push_back(one[l]);
    out.kl.push_back(exp_of_mean(at));
  }
  out.factor = exp_of_mean(slopes);
  out.verdict = verdict_of(out.factor);
  return out;
}

}  // namespace kvbench::eval
