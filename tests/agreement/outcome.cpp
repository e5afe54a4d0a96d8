// SPDX-License-Identifier: Apache-2.0
#include "outcome.hpp"

#include <algorithm>
#include <cmath>

namespace kvbench::testing {

namespace {

constexpr double tolerance = 1e-4;
constexpr float margin = 1e-5f;

/// Every number times 1 + margin * u, u uniform in (-1, 1).
void perturb(std::vector<float>& numbers, std::uint32_t stream, std::uint32_t part) {
  const std::vector<float> u = random_numbers(static_cast<Index>(numbers.size()), stream, part);  // in (-2, 2)
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] *= 1 + margin * u[i] / 2;
}

Heads perturbed(Heads heads, std::uint32_t trial) {
  for (std::size_t h = 0; h < heads.size(); ++h) {
    const auto stream = 1000 + 10 * trial + static_cast<std::uint32_t>(h);
    perturb(heads[h].keys, stream, 0);
    perturb(heads[h].pre_rope, stream, 1);
    perturb(heads[h].values, stream, 2);
    perturb(heads[h].queries, stream, 3);
  }
  return heads;
}

/// Whether two entries have the same token and weights in the same sums.
bool same_entry(const Entry& a, const Entry& b) {
  return a.id == b.id && (a.num == 0) == (b.num == 0) && (a.den == 0) == (b.den == 0);
}

bool near(double a, double b, double size) { return std::isfinite(a) && std::abs(a - b) <= tolerance * size; }

std::string weight_difference(const std::vector<Entry>& a, const std::vector<Entry>& b) {
  for (std::size_t e = 0; e < a.size(); ++e) {
    if (near(a[e].num, b[e].num, std::abs(double{b[e].num})) && near(a[e].den, b[e].den, std::abs(double{b[e].den})))
      continue;
    return "weights of token " + std::to_string(a[e].id) + ": " + std::to_string(a[e].num) + ", " +
           std::to_string(a[e].den) + " against " + std::to_string(b[e].num) + ", " + std::to_string(b[e].den);
  }
  return "";
}

std::string answer_difference(const Result& a, const Result& b) {
  const std::size_t rows = a.entries.size(), dv = rows == 0 ? 0 : a.answers.size() / rows;
  for (std::size_t i = 0; i < a.answers.size(); ++i) {
    const auto row = b.answers.begin() + static_cast<std::ptrdiff_t>(i / dv * dv);
    double size = 0;
    for (auto x = row; x != row + static_cast<std::ptrdiff_t>(dv); ++x) size = std::max(size, std::abs(double{*x}));
    if (near(a.answers[i], b.answers[i], size)) continue;
    return "answer row " + std::to_string(i / dv) + " column " + std::to_string(i % dv) + ": " +
           std::to_string(a.answers[i]) + " against " + std::to_string(b.answers[i]);
  }
  return "";
}

std::string result_difference(const Result& a, const Result& b) {
  for (std::size_t r = 0; r < a.entries.size(); ++r) {
    if (std::string found = weight_difference(a.entries[r], b.entries[r]); !found.empty()) return found;
  }
  return answer_difference(a, b);
}

/// Calls test(result of a, result of b) for all steps of all heads until it returns false. Also false where the numbers
/// of results differ.
template <class Test>
bool all_results(const Outcome& a, const Outcome& b, Test test) {
  return std::ranges::equal(*a, *b, [&](const auto& x, const auto& y) { return std::ranges::equal(x, y, test); });
}

}  // namespace

Outcome outcome_of(const Run& run, const Heads& heads, Backend& backend) {
  Trial trial(run.row, backend);
  const Instance instance = trial.try_open(heads, run.budget, run.seed);
  if (!instance.session) return std::nullopt;
  if (run.decode) return trial.decode(instance, heads);
  std::vector<std::vector<Result>> results;
  for (Result& result : trial.prefill(instance, heads)) results.push_back({std::move(result)});
  return results;
}

bool same_decisions(const Outcome& a, const Outcome& b) {
  if (!a || !b) return a.has_value() == b.has_value();
  return all_results(a, b, [](const Result& x, const Result& y) {
    const auto same_row = [](const auto& p, const auto& q) { return std::ranges::equal(p, q, same_entry); };
    return std::ranges::equal(x.entries, y.entries, same_row);
  });
}

std::string difference(const Outcome& a, const Outcome& b) {
  std::string found;
  if (!a || !b) return found;
  all_results(a, b, [&](const Result& x, const Result& y) { return (found = result_difference(x, y)).empty(); });
  return found;
}

bool undecided(const Run& run, const Heads& heads, const Outcome& outcome, Backend& backend) {
  constexpr std::uint32_t trials = 32;
  for (std::uint32_t trial = 0; trial < trials; ++trial) {
    if (!same_decisions(outcome, outcome_of(run, perturbed(heads, trial), backend))) return true;
  }
  return false;
}

}  // namespace kvbench::testing
