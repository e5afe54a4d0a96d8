// SPDX-License-Identifier: Apache-2.0
#include <kvbench/replay/records/figures.hpp>

#include <map>
#include <numeric>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <kvbench/replay/plan/fields.hpp>

namespace kvbench::replay {
namespace {

std::string capital(std::string_view words) {
  std::string out(words);
  out.front() = static_cast<char>(out.front() - 'a' + 'A');
  return out;
}

/// Units are probes, or the probes of layers; texts are what draws of a method are independent in.
TestedSums tested_predictions(const Record& r) {
  TestedSums out{.sums = {.seeds = r.probes.front().seeds}};
  for (const ProbeSums& text : r.probes) {
    const std::vector<double> units = unit_predictions(text, r.probed);
    const std::size_t seeds = out.sums.seeds;
    out.sums.blocks.insert(out.sums.blocks.end(), units.begin(), units.end());
    out.sums.block_counts.resize(out.sums.blocks.size(), 1);
    for (std::size_t seed = 0; seed < seeds; ++seed) {
      double sum = 0;
      for (std::size_t i = seed; i < units.size(); i += seeds) sum += units[i];
      out.sums.heads.push_back(sum);
    }
    out.sums.head_counts.resize(out.sums.heads.size(), static_cast<double>(units.size()) / static_cast<double>(seeds));
    out.places.push_back({.prompt = out.places.size(),
                          .sum = std::accumulate(units.begin(), units.end(), 0.0),
                          .count = static_cast<double>(units.size())});
  }
  return out;
}

}  // namespace

std::string_view name_of(FigureNumber figure) { return figure == FigureNumber{} ? "" : figure_of(figure).name; }

template <>
const std::map<std::string, FigureNumber>& value_names() {
  static const auto names = [] {
    std::map<std::string, FigureNumber> all{{"auto", FigureNumber{}}};
    for (const RankingFigure& figure : ranking_figures) all.emplace(figure.name, number_of(figure));
    return all;
  }();
  return names;
}

const char* ranking_help() {
  static const std::string text = [] {
    std::vector<std::string> figures;
    for (const RankingFigure& figure : ranking_figures)
      figures.push_back(fmt::format("{} ({})", figure.name, figure.help));
    return fmt::format("What ranks methods: {}, or auto: the first of these that all rows of a budget have",
                       fmt::join(figures, ", "));
  }();
  return text.c_str();
}

std::string RankingFigure::column() const {
  return is_prediction() ? std::string(name) : fmt::format("{}_{}", name, squares ? "rms" : "mean");
}

std::string RankingFigure::title() const { return capital(quantity); }
std::string RankingFigure::average_title() const { return capital(average); }
std::string RankingFigure::axis() const { return fmt::format("{}{}{}", average, unit.empty() ? "" : ", ", unit); }

double RankingFigure::mean(const Record& r) const {
  if (is_prediction()) return r.kl.mean;
  return squares ? r.of(*metric).rms : r.of(*metric).mean;
}

Interval RankingFigure::interval(const Record& r) const {
  return is_prediction() ? r.kl.interval : Interval{r.of(*metric).lo, r.of(*metric).hi};
}

TestedSums RankingFigure::tested(const Record& r) const {
  return is_prediction() ? tested_predictions(r) : r.tested_of(*metric);
}

std::string_view RankingFigure::block(const Record& r) const {
  return !is_prediction() ? "blocks of queries" : r.probed.extrapolates ? "probes of layers" : "probes";
}

}  // namespace kvbench::replay
