// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/eval/damage_standing.hpp>

#include <algorithm>
#include <cmath>
#include <optional>

#include <fmt/format.h>

#include <kvbench/compare/comparison.hpp>
#include <kvbench/core/ordered_map.hpp>
#include <kvbench/core/verdict.hpp>
#include <kvbench/evidence/test.hpp>
#include <kvbench/report/text/text.hpp>

namespace kvbench::report {
namespace {

double kl_over_texts(const DamageOf& one) {
  return std::exp(one.mean_of(
      [](const eval::EvalRecord& r) { return std::log(std::max(r.of(eval::damage("kl_mean")).mean, 1e-12)); }));
}

evidence::Values values_of(const DamageOf& one) {
  evidence::Values out{.mean = kl_over_texts(one)};
  for (const auto& [document, of_document] : one.kl)
    out.places.sums.push_back(of_document), out.places.counts.push_back(1);
  return out;
}

bool same_documents(const DamageOf& a, const DamageOf& b) {
  constexpr auto document = &decltype(DamageOf::kl)::value_type::first;
  return std::ranges::equal(a.kl, b.kl, {}, document, document);
}

bool is_damage_of_method(const eval::EvalRecord& r) {
  return r.status == replay::Status::ok && !r.layer && r.injection.mode == eval::Inject::all &&
         !compare::is_baseline(r.method) && std::isfinite(r.of(eval::damage("kl_mean")).mean);
}

/// The configurations with rows on every text that compressed the most layers.
std::vector<DamageOf> ranked(std::span<const RowsOfText> texts, const std::string& task, const Budget& budget) {
  OrderedMap<std::string, DamageOf> found;
  Index most = 0;
  for (const RowsOfText& rows : texts) {
    for (const eval::EvalRecord* r : rows) {
      if (r->task != task || r->budget != budget || !is_damage_of_method(*r)) continue;
      DamageOf& one = found[compare::label_of({r->method, r->params, {}})];
      if (r->document == "all") {
        one.of_texts.push_back(r);
        most = std::max(most, r->compressed_layers);
      } else {
        one.kl[{static_cast<std::size_t>(&rows - texts.data()), r->document_sha256}] =
            r->of(eval::damage("kl_mean")).mean;
      }
    }
  }
  std::vector<DamageOf> out;
  for (auto& [name, one] : found.items()) {
    const bool whole = std::ranges::all_of(one.of_texts, [&](auto* r) { return r->compressed_layers == most; });
    if (one.of_texts.size() < texts.size() || !whole) continue;
    one.name = name;
    out.push_back(std::move(one));
  }
  return out;
}

DamageStanding standing_of(std::vector<DamageOf> all, std::size_t texts) {
  const evidence::PlaceSample documents{.rows = "documents"};
  const evidence::Scale scale{.least = 1e-12};
  std::vector<evidence::Values> values;
  for (const DamageOf& one : all) values.push_back(values_of(one));
  std::vector<const evidence::Values*> group;
  for (const evidence::Values& one : values) group.push_back(&one);
  const evidence::Best best = best_of(group, documents, scale);
  std::vector<evidence::Pair> pairs;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const bool comparable = i != best.index && best.over_places && same_documents(all[i], all[best.index]);
    pairs.push_back({values[i], values[best.index], comparable ? std::optional(documents) : std::nullopt});
  }
  DamageStanding out{.over_documents = best.over_places};
  std::vector<evidence::Mark> marks;
  for (const evidence::Test& test : test_group(pairs, {.scale = scale})) {
    const std::size_t i = marks.size();
    marks.push_back({.name = all[i].name, .mean = values[i].mean, .ratio = test.effect, .interval = test.interval});
    if (best.over_places) marks[i].mean = std::exp(over_places(values[i], scale));
    if (test.over == evidence::Test::Over::nothing) continue;
    marks[i].tied = test.p_adjusted > decided_at;
    marks[i].tested_over = test.tested_over + (texts > 1 ? fmt::format(" of {} texts", texts) : "");
    out.factors.push_back(test.interval.hi / test.effect);
  }
  out.standing = evidence::standing_of(std::move(marks), best.index);
  out.all = std::move(all);
  return out;
}

}  // namespace

std::vector<DamageStanding> damage_standings(std::span<const RowsOfText> texts) {
  DistinctTexts tasks;
  Distinct<Budget> budgets;
  for (const RowsOfText& rows : texts) {
    for (const eval::EvalRecord* r : rows) tasks.add(r->task), budgets.add(r->budget);
  }
  std::vector<DamageStanding> out;
  for (const std::string& task : tasks.list()) {
    for (const Budget& budget : budgets.list()) {
      std::vector<DamageOf> all = ranked(texts, task, budget);
      if (all.size() >= 2) out.push_back(standing_of(std::move(all), texts.size()));
    }
  }
  return out;
}

}  // namespace kvbench::report
