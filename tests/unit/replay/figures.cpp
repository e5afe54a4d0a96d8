// SPDX-License-Identifier: Apache-2.0
#include <kvbench/replay/records/figures.hpp>

#include <string>

#include <doctest/doctest.h>

#include <kvbench/replay/plan/fields.hpp>

using namespace kvbench;
using namespace kvbench::replay;

TEST_CASE("a figure has the name of its metric, and its number names its row") {
  for (const RankingFigure& figure : ranking_figures) {
    CAPTURE(figure.name);
    CHECK((figure.metric == nullptr || name_of(*figure.metric) == figure.name));
    CHECK(&figure_of(number_of(figure)) == &figure);
    CHECK(value_names<FigureNumber>().at(std::string(figure.name)) == number_of(figure));
  }
  CHECK(value_names<FigureNumber>().size() == enumerator_count<FigureNumber>);
  CHECK(&figure_of({}) == &figure_of(figure_named("rel_err")));
  CHECK(name_of(FigureNumber{}).empty());
}

TEST_CASE("what is said of a figure follows from its row") {
  const RankingFigure &kl = figure_of(figure_named("kl_predicted")),
                      &residual = figure_of(figure_named("residual_err"));
  CHECK(std::string(ranking_help()).find("residual_err (of traces with sketches of W_O), ") != std::string::npos);
  CHECK(kl.column() == "kl_predicted");
  CHECK(kl.heading() == "predicted KL");
  CHECK(kl.axis() == "predicted KL, nats per token");
  CHECK(residual.column() == "residual_err_rms");
  CHECK(residual.heading() == "residual_err");
  CHECK(residual.average_title() == "Root mean square residual error");
}
