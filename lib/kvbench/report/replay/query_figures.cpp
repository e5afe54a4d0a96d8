// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/replay/figures.hpp>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>

#include <fmt/format.h>

#include <kvbench/core/error.hpp>
#include <kvbench/core/paired_test.hpp>
#include <kvbench/core/statistics.hpp>
#include <kvbench/report/drawing/charts.hpp>
#include <kvbench/report/drawing/marks.hpp>
#include <kvbench/report/replay/sections.hpp>
#include <kvbench/report/text/sentences.hpp>
#include <kvbench/report/text/text.hpp>

namespace kvbench::report {
namespace {

constexpr int coloured_series = 7;
constexpr std::size_t most_texts = 6;

/// Sum and number of the errors by the position of the query.
using ErrorsAlong = std::map<std::int32_t, std::pair<double, double>>;

/// The errors of a series at one budget, of all heads, layers and seeds.
struct QueryErrors {
  const Series* series;
  std::vector<double> values;                ///< sorted
  std::map<std::string, ErrorsAlong> along;  ///< by prompt
};

bool same_rows(const compare::QueryPlace& place, const ReplaySection& section, const ReplayPart& part) {
  return place.sha256 == part.sha256 && place.protocol == section.protocol && place.run == section.run &&
         (part.prompt.empty() || part.prompt == "all" || part.prompt == place.prompt);
}

void add_values(const compare::QueryPlace& place, const compare::QueryValues& values, QueryErrors& out) {
  if (values.status != replay::Status::ok || values.dense) return;
  for (std::size_t i = 0; i < values.values.size(); ++i) {
    const double error = values.values[i];
    if (std::isnan(error)) continue;
    out.values.push_back(error);
    auto& [sum, count] = out.along[place.prompt][place.positions[i]];
    sum += error, count += 1;
  }
}

/// One element per series that has errors at the budget. Of a configuration in several files the first counts.
std::vector<QueryErrors> errors_at(const Budget& budget, const ReplaySection& section, const ReplayPart& part,
                                   const std::vector<Series>& all,
                                   std::span<const compare::QueryResults* const> files) {
  std::vector<QueryErrors> out;
  for (const Series& series : all) {
    QueryErrors errors{.series = &series};
    for (const compare::QueryResults* file : files) {
      if (!errors.values.empty()) break;
      for (std::size_t c = 0; c < file->configurations().size(); ++c) {
        const compare::QueryConfiguration& one = file->configurations()[c];
        if (one.method != series.method || one.params != series.params || one.budget != budget) continue;
        for (std::size_t p = 0; p < file->places().size(); ++p) {
          if (!same_rows(file->places()[p], section, part)) continue;
          if (const auto values = file->read(p, c)) add_values(file->places()[p], *values, errors);
        }
      }
    }
    std::ranges::sort(errors.values);
    if (!errors.values.empty() && series.method != "exact") out.push_back(std::move(errors));
  }
  return out;
}

ChartLine line_of(const Series& series) {
  const bool shown = series.rank < coloured_series || marks::is_own(series.style);
  const LineRole role = series.reference ? LineRole::reference : shown ? LineRole::shown : LineRole::context;
  return {.name = series.method, .detail = series.params, .role = role, .style = series.style};
}

/// An error that as many in a thousand of the sorted values do not exceed.
double quantile_of(const std::vector<double>& sorted, int thousandths) {
  const double at = thousandths / 1000. * static_cast<double>(sorted.size() - 1);
  return sorted[static_cast<std::size_t>(std::lround(at))];
}

Drawing finished(LineChart chart) {
  std::vector<double> values;
  for (const ChartLine& line : chart.lines) {
    for (const ChartPoint& point : line.points) values.push_back(point.y);
  }
  chart.y = log_axis(log_extent(values), "relative error of a query");
  return draw(chart);
}

Drawing distribution(const std::vector<QueryErrors>& all) {
  LineChart chart{.title = "Distribution of the errors",
                  .description = "Share of the queries whose error is at most the value of the line",
                  .x = linear_axis(0, 100, "share of the queries with at most this error, %"),
                  .width = 450,
                  .plot_height = 300};
  for (const QueryErrors& errors : all) {
    chart.lines.push_back(line_of(*errors.series));
    for (int k = 1; k <= 99; ++k)
      chart.lines.back().points.push_back({static_cast<double>(k), quantile_of(errors.values, 10 * k), NAN, NAN, ""});
  }
  return finished(std::move(chart));
}

/// Means over blocks of neighbouring queries of one prompt.
Drawing course(const std::vector<QueryErrors>& all, const std::string& prompt, const std::string& title) {
  double first = INFINITY, last = 0;
  std::vector<ChartLine> lines;
  for (const QueryErrors& errors : all) {
    const auto along = errors.along.find(prompt);
    if (along == errors.along.end()) continue;
    lines.push_back(line_of(*errors.series));
    double sum = 0, count = 0, position = 0;
    std::int64_t queries = 0;
    for (auto at = along->second.begin(); at != along->second.end();) {
      sum += at->second.first, count += at->second.second, position += at->first;
      const bool end = ++at == along->second.end();
      if (++queries < queries_per_block && !end) continue;
      lines.back().points.push_back({position / static_cast<double>(queries), sum / count, NAN, NAN, ""});
      first = std::min(first, lines.back().points.back().x), last = std::max(last, lines.back().points.back().x);
      sum = count = position = 0, queries = 0;
    }
  }
  if (!(first < last)) first -= 0.5, last = first + 1;
  return finished({.title = title,
                   .description = "Mean error of neighbouring queries against their position",
                   .x = linear_axis(first, last, "position of the query"),
                   .lines = std::move(lines),
                   .width = 450,
                   .plot_height = 300});
}

/// One drawing per prompt.
std::vector<Drawing> courses(const std::vector<QueryErrors>& all) {
  DistinctTexts prompts;
  for (const QueryErrors& errors : all) {
    for (const auto& [prompt, along] : errors.along) prompts.add(prompt);
  }
  std::vector<Drawing> out;
  for (const std::string& prompt : prompts.list()) {
    const std::string title = prompts.list().size() == 1 ? "" : fmt::format(", prompt {}", prompt);
    if (out.size() < most_texts) out.push_back(course(all, prompt, "Error along the text" + title));
  }
  return out;
}

DocTable quantile_table(const std::vector<QueryErrors>& all) {
  DocTable table{.title = "Quantiles of the errors", .columns = {{"method"}, {"queries", true}}};
  constexpr int shown[] = {100, 250, 500, 750, 900, 990, 1000};
  for (const int q : shown) table.columns.push_back({q == 1000 ? "largest" : fmt::format("{} %", q / 10), true});
  for (const QueryErrors& errors : all) {
    std::vector<TableCell> cells = {errors.series->name(), fmt::format("{}", errors.values.size())};
    for (const int q : shown) cells.emplace_back(three_digits(quantile_of(errors.values, q)));
    table.rows.push_back(std::move(cells));
  }
  return table;
}

}  // namespace

std::vector<Block> query_figures(const ReplaySection& section, const ReplayPart& part, const std::vector<Series>& all,
                                 std::span<const compare::QueryResults* const> files) {
  std::vector<Block> blocks;
  for (const Budget& budget : main_budgets(budgets_of(part))) {
    const std::vector<QueryErrors> errors = errors_at(budget, section, part, all, files);
    if (errors.empty()) continue;
    Figure figure{
        .title = "Errors of single queries at " + budget.text(),
        .drawings = {distribution(errors)},
        .caption = fmt::format(
            "Distribution: of all queries, heads, layers and seeds; the axis of errors is vertical, so that a lower "
            "line is better. Along the text: means over {} neighbouring queries{}. Faint lines without a name: all "
            "further methods.",
            queries_per_block, errors.front().along.size() > most_texts ? "; the first prompts" : ""),
        .numbers = quantile_table(errors)};
    std::ranges::move(courses(errors), std::back_inserter(figure.drawings));
    for (Drawing& drawing : figure.drawings) drawing.budgets = budget_words(budget);
    blocks.emplace_back(std::move(figure));
  }
  return blocks;
}

namespace {

constexpr std::size_t map_columns = 128, map_rows = 32;

/// A query head of a raw file, and the configurations at one budget (of the first seed) with their series.
struct MappedHead {
  const compare::QueryResults* file;
  std::size_t place;
  std::vector<std::pair<const Series*, std::size_t>> configurations;  ///< in ascending order of the error
};

double mean_error(const compare::QueryResults& file, std::size_t place, std::size_t configuration) {
  const auto values = file.read(place, configuration);
  double sum = 0, count = 0;
  if (!values || values->status != replay::Status::ok || values->dense) return NAN;
  for (const double value : values->values) {
    if (!std::isnan(value)) sum += value, count += 1;
  }
  return sum / count;
}

std::vector<std::pair<const Series*, std::size_t>> configurations_at(const Budget& budget,
                                                                     const std::vector<Series>& all,
                                                                     const compare::QueryResults& file) {
  std::vector<std::pair<double, std::pair<const Series*, std::size_t>>> found;
  for (const Series& series : all) {
    const auto row = std::ranges::find(series.rows, budget, [](const ReplayRow* r) { return r->budget; });
    if (series.reference || row == series.rows.end() || !(*row)->ok()) continue;
    for (std::size_t c = 0; c < file.configurations().size(); ++c) {
      const compare::QueryConfiguration& one = file.configurations()[c];
      if (one.method != series.method || one.params != series.params || one.budget != budget) continue;
      found.push_back({(*row)->error, {&series, c}});
      break;
    }
  }
  std::ranges::stable_sort(found, {}, [](const auto& item) { return item.first; });
  std::vector<std::pair<const Series*, std::size_t>> out;
  for (const auto& [error, item] : found) out.push_back(item);
  return out;
}

/// The head with the largest error of the best configuration.
std::optional<MappedHead> worst_head(const ReplaySection& section, const ReplayPart& part,
                                     const std::vector<Series>& all, const Budget& budget,
                                     std::span<const compare::QueryResults* const> files) {
  std::optional<MappedHead> worst;
  double largest = -1;
  for (const compare::QueryResults* file : files) {
    const auto configurations = configurations_at(budget, all, *file);
    if (configurations.empty()) continue;
    for (std::size_t p = 0; p < file->places().size(); ++p) {
      const compare::QueryPlace& place = file->places()[p];
      if (place.sha256 != part.sha256 || place.protocol != section.protocol) continue;
      const double error = mean_error(*file, p, configurations[0].second);
      if (error > largest) largest = error, worst = MappedHead{file, p, configurations};
    }
  }
  return worst;
}

struct TracePlace {
  const trace::PromptInfo* prompt;
  const trace::LayerInfo* layer;
};

TracePlace find_place(const trace::TraceInfo& info, const compare::QueryPlace& place) {
  const auto prompt = std::ranges::find(info.prompts, place.prompt, &trace::PromptInfo::id);
  if (prompt != info.prompts.end()) {
    const auto layer = std::ranges::find(prompt->layers, place.layer, &trace::LayerInfo::layer);
    if (layer != prompt->layers.end()) return {&*prompt, &*layer};
  }
  throw Error("the trace has no prompt '{}' with layer {}, which the raw results have", place.prompt, place.layer);
}

/// The exact softmax row of a query over the tokens up to its position.
std::vector<double> softmax_row(const trace::LayerInfo& layer, std::span<const float> query,
                                std::span<const float> keys, std::int64_t position) {
  const std::size_t d = query.size();
  std::vector<double> row(static_cast<std::size_t>(position) + 1);
  const std::size_t first =
      layer.window > 0 && position >= layer.window ? static_cast<std::size_t>(position - layer.window + 1) : 0;
  double most = -INFINITY, sum = 0;
  for (std::size_t t = first; t < row.size(); ++t) {
    double product = 0;
    for (std::size_t k = 0; k < d; ++k) product += static_cast<double>(query[k]) * static_cast<double>(keys[t * d + k]);
    row[t] = layer.scale * product;
    if (layer.softcap > 0) row[t] = layer.softcap * std::tanh(row[t] / layer.softcap);
    most = std::max(most, row[t]);
  }
  for (std::size_t t = first; t < row.size(); ++t) sum += row[t] = std::exp(row[t] - most);
  for (std::size_t t = first; t < row.size(); ++t) row[t] /= sum;
  return row;
}

std::size_t column_of(std::size_t token, std::size_t tokens) { return token * std::min(map_columns, tokens) / tokens; }

/// [rows][columns] mean attention of the evaluated queries.
void add_mass(const trace::Reader& reader, const compare::QueryPlace& place, AttentionMap& map) {
  const auto [prompt, layer] = find_place(reader.info(), place);
  const std::vector<float> keys = reader.read_head(*prompt, *layer, trace::Array::keys, place.kv_head);
  const std::vector<float> queries = reader.read_head(*prompt, *layer, trace::Array::queries, place.query_head);
  const auto d = static_cast<std::size_t>(reader.info().head_dim),
             tokens = static_cast<std::size_t>(prompt->num_tokens);
  const std::size_t count = place.positions.size(), rows = std::min(map_rows, count);
  map.mass.assign(rows, std::vector<double>(std::min(map_columns, tokens), 0));
  std::vector<double> sizes(rows, 0);
  for (std::size_t i = 0; i < count; ++i) {
    const auto at =
        std::ranges::lower_bound(layer->query_positions, place.positions[i]) - layer->query_positions.begin();
    const std::span query(queries.data() + static_cast<std::size_t>(at) * d, d);
    const std::vector<double> row = softmax_row(*layer, query, keys, place.positions[i]);
    for (std::size_t t = 0; t < row.size(); ++t) map.mass[i * rows / count][column_of(t, tokens)] += row[t];
    ++sizes[i * rows / count];
  }
  for (std::size_t r = 0; r < rows; ++r) {
    for (double& value : map.mass[r]) value /= sizes[r];
  }
}

/// The share of each column's tokens that the entries of a query head name, mean over the queries that they answer.
std::vector<double> kept_shares(std::span<const compare::NamedTokens> tables, Index head, std::size_t tokens) {
  std::vector<double> shares(std::min(map_columns, tokens), 0), sizes(shares.size(), 0);
  for (std::size_t t = 0; t < tokens; ++t) ++sizes[column_of(t, tokens)];
  for (const compare::NamedTokens& table : tables) {
    for (Index i = 0; i < table.queries; ++i) {
      for (const std::int32_t id : table.row(head, i)) {
        if (id >= 0 && static_cast<std::size_t>(id) < tokens)
          shares[column_of(static_cast<std::size_t>(id), tokens)] += 1 / static_cast<double>(table.queries);
      }
    }
  }
  for (std::size_t c = 0; c < shares.size(); ++c) shares[c] = std::min(1., shares[c] / sizes[c]);
  return shares;
}

}  // namespace

std::vector<Block> attention_figure(const ReplaySection& section, const ReplayPart& part,
                                    const std::vector<Series>& all, std::span<const compare::QueryResults* const> files,
                                    const trace::Reader& reader) {
  const std::vector<Budget> budgets = main_budgets(budgets_of(part));
  if (budgets.empty() || reader.sha256().substr(0, 12) != part.sha256) return {};
  const std::optional<MappedHead> head = worst_head(section, part, all, budgets[0], files);
  if (!head) return {};
  const compare::QueryPlace& place = head->file->places()[head->place];
  const trace::TraceInfo& info = reader.info();
  AttentionMap map{
      .title = fmt::format("Layer {}, query head {}, budget {}", place.layer, place.query_head, budgets[0]),
      .description = "Exact attention of the queries of a head, and the tokens that methods keep",
      .tokens = static_cast<double>(find_place(info, place).prompt->num_tokens)};
  add_mass(reader, place, map);
  for (const auto& [series, configuration] : head->configurations) {
    const std::vector<compare::NamedTokens> tables = head->file->entries(head->place, configuration);
    if (tables.empty()) continue;  // rows that are not ok have none
    map.kept.push_back(
        {series->name(), kept_shares(tables, place.query_head % info.group(), static_cast<std::size_t>(map.tokens))});
  }
  Drawing drawing = draw(map);
  drawing.budgets = budget_words(budgets[0]);
  return {
      Figure{.title = fmt::format("Attention{} of the head on which {} has its largest error",
                                  map.kept.empty() ? "" : " and kept tokens", head->configurations[0].first->name()),
             .drawings = {std::move(drawing)},
             .caption = std::string("Exact attention, one row per group of neighbouring queries from the first to "
                                    "the last; the colours are logarithmic, from 0.0001 (faintest) to 1.") +
                        (map.kept.empty() ? " The raw results have no kept tokens (--raw-outputs)."
                                          : " Below: per method the share of the tokens that its entries name, "
                                            "from none (faintest) to all.")}};
}

}  // namespace kvbench::report
