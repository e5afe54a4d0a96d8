// SPDX-License-Identifier: Apache-2.0
#include <kvbench/sweep/check_cells.hpp>

#include <algorithm>
#include <set>
#include <stdexcept>

namespace kvbench::sweep {
namespace {

// More than ten times the largest sweep of docs/planning.md. Products of numbers in a small file must not decide how
// much memory is allocated.
constexpr Index most_count = Index{1} << 31;                // of tokens, layers, heads
constexpr Index most_group = 1024;                          // query heads per kv head
constexpr std::size_t most_rows = std::size_t{1} << 28;     // query heads x queries of a sweep
constexpr std::size_t most_results = std::size_t{1} << 24;  // kv heads x configurations of a sweep

void require(bool holds, const char* fault) {
  if (!holds) throw std::out_of_range(fault);
}

bool is_count(Index number) { return number >= 0 && number <= most_count; }

void check_frame(const replay::ReplayFrame& frame) {
  require(frame.group >= 1 && frame.group <= most_group, "a number of query heads is wrong");
  for (const replay::ReplayFrame::Prompt& prompt : frame.prompts)
    require(is_count(prompt.context_tokens), "a number of tokens is wrong");
  for (const replay::Configuration& one : frame.configurations) {
    require(one.method < frame.methods.size() && one.budget < frame.budgets.size(),
            "a configuration has no method or budget");
  }
}

/// Heads are in the order of the plan, each of them once.
void check_heads(const std::vector<replay::HeadResult>& heads, const replay::ReplayFrame& frame) {
  for (const replay::HeadResult& head : heads) {
    require(head.place.prompt < frame.prompts.size(), "a head has no prompt");
    require(is_count(head.place.kv_head) && is_count(head.layer), "the number of a head or layer is wrong");
    require(std::ranges::all_of(head.positions, [](std::int32_t at) { return at >= 0; }),
            "the position of a query is wrong");
  }
  const auto not_ascending = [](const replay::HeadResult& a, const replay::HeadResult& b) {
    return !(a.place < b.place);
  };
  require(std::ranges::adjacent_find(heads, not_ascending) == heads.end(), "the heads are not in order");
}

void check_entries(const std::vector<CellEntry>& entries, std::size_t methods, std::size_t heads) {
  std::set<std::pair<std::uint32_t, std::uint32_t>> known;
  for (const CellEntry& entry : entries) {
    require(entry.method < methods && !entry.heads.empty(), "a cell has no method or head");
    for (const std::uint32_t head : entry.heads) {
      require(head < heads, "a cell is of an unknown head");
      require(known.emplace(entry.method, head).second, "two cells are of the same head");
    }
  }
}

std::size_t rows_of(const StepLayout& step) {
  std::size_t rows = 0;
  for (const replay::HeadResult& head : step.heads)
    rows += static_cast<std::size_t>(step.frame.group) * head.positions.size();
  return rows;
}

}  // namespace

void check_layout(const SweepLayout& layout) {
  std::size_t rows = 0, results = 0;
  for (const StepLayout& step : layout.steps) {
    check_frame(step.frame);
    check_heads(step.heads, step.frame);
    check_heads(step.measured, step.frame);
    check_entries(step.cells, step.frame.methods.size(), step.heads.size());
    check_entries(step.measures, 1, step.measured.size());
    rows += rows_of(step);
    results += step.heads.size() * step.frame.configurations.size();
    require(rows <= most_rows && results <= most_results, "the sweep has more results than can be computed");
  }
}

void check_cells(const CellBlock& block, const StepLayout& step, const CellEntry& entry) {
  const auto configurations = static_cast<std::size_t>(
      std::ranges::count(step.frame.configurations, entry.method, &replay::Configuration::method));
  const auto group = static_cast<std::size_t>(step.frame.group);
  require(block.size() == entry.heads.size(), "a cell has other heads than its layout says");
  for (std::size_t h = 0; h < block.size(); ++h) {
    require(block[h].size() == configurations, "a cell has other configurations than its layout says");
    const std::size_t rows = group * step.heads[entry.heads[h]].positions.size();
    for (const replay::ConfigurationResult& result : block[h]) {
      if (result.status != replay::Status::ok) continue;
      require(result.metrics.size() == rows && result.rel_err_fro.size() == group,
              "a cell has other queries than its layout says");
    }
  }
}

}  // namespace kvbench::sweep
