// SPDX-License-Identifier: Apache-2.0
#include <apps/kvbench/allocation_figure.hpp>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <kvbench/report/drawing/charts.hpp>
#include <kvbench/report/drawing/labels.hpp>
#include <kvbench/report/text/sentences.hpp>
#include <kvbench/report/text/text.hpp>

namespace kvbench::app {
namespace {

using allocate::Damages;

constexpr double width = 680;  // px

/// The number of its layer; the heads of a layer lie side by side around it.
double position_of(const Damages& damages, std::size_t place) {
  const methods::PlanPlace& at = damages.places[place];
  if (damages.by == allocate::Division::layer) return static_cast<double>(at.layer);
  const auto heads = std::ranges::count(damages.places, at.layer, &methods::PlanPlace::layer);
  return static_cast<double>(at.layer) + (static_cast<double>(at.kv_head) + 0.5) / static_cast<double>(heads) - 0.5;
}

report::ChartLine line_of(const Damages& damages, const allocate::Allocation& allocation, int style) {
  report::ChartLine line{
      .name = allocation.budget.text(), .detail = allocation.confirmed() ? "" : "not confirmed", .style = style};
  const allocate::Plan& plan = allocation.plan.plan;
  for (std::size_t place = 0; place < plan.size(); ++place) {
    report::ChartPoint point{position_of(damages, place), 100 * damages.share(place, plan[place])};
    for (const allocate::Plan& other : allocation.plan.without) {
      const double percent = 100 * damages.share(place, other[place]);
      point.lo = std::fmin(point.lo, percent), point.hi = std::fmax(point.hi, percent);
    }
    line.points.push_back(std::move(point));
  }
  return line;
}

/// Of all points and bars.
report::Axis share_axis(std::span<const report::ChartLine> lines) {
  double lo = 100, hi = 0;
  for (const report::ChartLine& line : lines) {
    for (const report::ChartPoint& point : line.points) {
      lo = std::min(lo, std::fmin(point.y, point.lo)), hi = std::max(hi, std::fmax(point.y, point.hi));
    }
  }
  report::Axis axis{report::Scale::log, std::max(lo, 0.01) / 1.12, std::max(hi, 0.02) * 1.12, {}, "share of its cache"};
  axis.ticks = report::log_ticks(axis.lo, axis.hi);
  for (report::Tick& tick : axis.ticks) tick.label += tick.label.empty() ? "" : "%";
  return axis;
}

/// What the figure is of: no page is around it.
std::string source_of(const Damages& damages, const MenuNames& names) {
  std::vector<std::string> documents;
  for (const allocate::DocumentDamage& document : damages.documents) documents.push_back(document.name);
  report::DistinctTexts menu;
  for (const std::string& name : names) menu.add(name);
  const bool one = documents.size() == 1;
  return fmt::format("{}; {}{}; menu: {}.{}", damages.model,
                     one ? "document " : fmt::format("{} documents: ", documents.size()),
                     report::listed_up_to(documents), report::listed_up_to(menu.list()),
                     one ? "" : " Bars: in the plans of all documents but one.");
}

}  // namespace

report::Drawing plan_figure(const Damages& damages, std::span<const AllocationRow> allocations,
                            const MenuNames& names) {
  report::LineChart chart{.description =
                              "share of its cache that each layer holds in plans; bars: in the plans of all "
                              "documents but one",
                          .apart = allocations.size() > 1,
                          .width = width};
  for (const AllocationRow& allocation : allocations) {
    chart.lines.push_back(line_of(damages, allocation, static_cast<int>(chart.lines.size())));
    chart.levels.push_back(100 * allocation.budget.share());
  }
  const auto [first, last] = std::ranges::minmax(damages.places, {}, &methods::PlanPlace::layer);
  const double lo = static_cast<double>(first.layer) - 0.7, hi = static_cast<double>(last.layer) + 0.7;
  std::vector<report::Tick> layers = report::linear_ticks(lo, hi, 10);
  std::erase_if(layers, [](const report::Tick& tick) { return tick.value != std::round(tick.value); });
  chart.x = {report::Scale::linear, lo, hi, std::move(layers),
             damages.by == allocate::Division::layer ? "layer" : "layer, a point for each kv head"};
  chart.y = share_axis(chart.lines);
  return report::with_text_below(draw(chart), source_of(damages, names));
}

}  // namespace kvbench::app
