// SPDX-License-Identifier: Apache-2.0
// The table of figures by which rows are ranked. Flags, columns, tests against the best row, sentences, tables and
// drawings follow from it; docs/add-a-ranking-figure.md adds a row.
#pragma once

#include <array>
#include <cmath>
#include <string>
#include <string_view>

#include <kvbench/core/enumeration.hpp>
#include <kvbench/replay/records/record.hpp>
#include <kvbench/trace/schema.hpp>

namespace kvbench::replay {

/// What a trace must have for a figure.
struct FigureNeeds {
  std::string_view what = "";  ///< as messages name it
  std::string_view flag = "";  ///< of kvbench-dump-hf, which records it: " --probes"
  /// Whether a layer has it, of whose text this many scored tokens are evaluated; null: every layer has
  bool (*in)(const trace::LayerInfo& layer, Index scored) = nullptr;
};

namespace needs {
inline constexpr FigureNeeds probes{
    "probes of scored tokens that are all evaluated", " --probes",
    [](const trace::LayerInfo& layer, Index scored) { return layer.probes && scored > 0; }};
inline constexpr FigureNeeds sketches{"sketches of W_O", "", [](const trace::LayerInfo& layer, Index) {
                                        return layer.output_sketch && layer.residual_norm;
                                      }};
}  // namespace needs

/// A figure of a row that is the lower the better: predicted KL, or a mean of a metric over the queries of the row.
struct RankingFigure {
  std::string_view name;         ///< in flags and in the column ranked_by; that of its metric, if any
  std::string_view help;         ///< what flags say of it
  std::string_view quantity;     ///< "error": "has the lowest error", "1.4 times the error"
  std::string_view quantities;   ///< "the errors": "geometric mean of the errors"
  std::string_view average;      ///< "mean relative error": of the number of a row
  std::string_view meaning;      ///< how captions begin
  std::string_view symbol = "";  ///< before a number: "KL "
  std::string_view unit = "";    ///< behind a number: "nats per token"
  FigureNeeds needs = {};
  const Metric* metric = nullptr;  ///< null: predicted KL
  bool squares = false;            ///< the root of the mean square, and tests compare squares; otherwise the mean
  double largest = NAN;            ///< above it values do not say how large the damage is; NaN: all do

  bool is_prediction() const { return metric == nullptr; }
  /// Whether each query head has a value of its own, so that layers and texts are places of a test. The others are
  /// figures of all heads and layers together, of which a few decide, so that places are texts.
  bool is_of_heads() const { return !is_prediction() && !is_of_layer(*metric); }
  /// Whether what tests compare is quadratic in the errors.
  bool is_quadratic() const { return squares || is_prediction(); }

  std::string column() const;  ///< of CSV files, with the number of a row
  std::string_view heading() const { return is_prediction() ? quantity : name; }  ///< of a column of tables
  std::string title() const;                                                      ///< "Error": "Error by layer"
  std::string average_title() const;                                              ///< "Mean relative error"
  std::string axis() const;                                                       ///< "predicted KL, nats per token"

  /// The number of a row; NaN where the row has none.
  double mean(const Record& r) const;
  /// Its 95 % interval; NaN where there is none.
  Interval interval(const Record& r) const;
  /// What is tested; the row has a number.
  TestedSums tested(const Record& r) const;
  /// What is independent in a test within texts: "blocks of queries".
  std::string_view block(const Record& r) const;
  /// Whether the mean is known to better than a factor of four, where a few huge values could determine it.
  bool is_estimable(const Record& r) const { return is_prediction() || r.of(*metric).mean_is_estimable(); }
  /// Why it means nothing in this row: "layer 0, error 0.64 of the stream"; "" where it does.
  std::string_view outside(const Record& r) const { return is_prediction() ? std::string_view(r.kl.outside) : ""; }
};

/// The first one that all rows of a budget have ranks them where nothing is asked for; those behind rel_err, which all
/// rows have, rank where they are asked for.
inline constexpr auto ranking_figures = std::to_array<RankingFigure>({
    {.name = "kl_predicted",
     .help = "damage to the output, of traces with probes",
     .quantity = "predicted KL",
     .quantities = "predicted KL",
     .average = "predicted KL",
     .meaning = "KL divergence of the model's next-token distributions that the errors cause, predicted from the "
                "probes of the trace, in nats per scored token",
     .symbol = "KL ",
     .unit = "nats per token",
     .needs = needs::probes,
     .largest = largest_predicted},
    {.name = "residual_err",
     .help = "of traces with sketches of W_O",
     .quantity = "residual error",
     .quantities = "residual error",
     .average = "root mean square residual error",
     .meaning = "Root mean square of |W_O (z - z*)| / |x| over all queries, layers and seeds",
     .needs = needs::sketches,
     .metric = &Metric::residual_err,
     .squares = true},
    {.name = "rel_err",
     .help = "the papers' error",
     .quantity = "error",
     .quantities = "the errors",
     .average = "mean relative error",
     .meaning = "Mean of |z - z*| / |z*| over all queries, heads, layers and seeds",
     .metric = &Metric::rel_err},
});

constexpr FigureNumber number_of(const RankingFigure& figure) {
  return static_cast<FigureNumber>(&figure - ranking_figures.data() + 1);
}

/// The figure of this name, which the code names. A name that the table lacks does not compile.
consteval FigureNumber figure_named(std::string_view name) {
  for (const RankingFigure& figure : ranking_figures) {
    if (figure.name == name) return number_of(figure);
  }
  throw "no such figure";
}

/// Of 0: rel_err.
constexpr const RankingFigure& figure_of(FigureNumber figure) {
  return ranking_figures[static_cast<std::size_t>(figure == FigureNumber{} ? figure_named("rel_err") : figure) - 1];
}

}  // namespace kvbench::replay

template <>
inline constexpr std::size_t kvbench::enumerator_count<kvbench::replay::FigureNumber> =
    kvbench::replay::ranking_figures.size() + 1;
