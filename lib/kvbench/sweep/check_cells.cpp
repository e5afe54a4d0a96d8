// SPDX-License-Identifier: Apache-2.0
#include <kvbench/sweep/cells_file.hpp>

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>
#include <tuple>

#include <kvbench/core/budget.hpp>
#include <kvbench/store/check_values.hpp>
#include <kvbench/trace/schema.hpp>

namespace kvbench::sweep {
namespace {

// More than ten times a sweep over a model of 70B parameters at a million tokens. Products of numbers in a small file
// must not decide how much memory is allocated.
constexpr Index most_count = Index{1} << 31;                // of tokens, layers, heads
constexpr Index most_group = 1024;                          // query heads per kv head
constexpr std::size_t most_rows = std::size_t{1} << 28;     // query heads x queries of a sweep
constexpr std::size_t most_results = std::size_t{1} << 24;  // kv heads x configurations of a sweep

using store::check_amount;
using store::check_bytes;
using store::check_message;
using store::check_name;
using store::require;

bool is_count(Index number) { return number >= 0 && number <= most_count; }

bool is_digest(const std::string& text) {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

void check_names(const replay::ReplayFrame& frame) {
  for (const std::string& name : {frame.trace, frame.model, frame.rope_layout, frame.device, frame.isa})
    check_name(name);
  require(is_digest(frame.sha256), "a digest is none");
  std::set<std::string> prompts;
  for (const replay::ReplayFrame::Prompt& prompt : frame.prompts) {
    check_name(prompt.id), check_name(prompt.name);
    require(prompts.insert(prompt.id).second, "two prompts have the same name");
    std::int64_t previous = 0;
    for (const trace::Span& span : prompt.spans) {
      check_name(span.name);
      require(previous <= span.begin && span.begin < span.end && span.end <= trace::most_tokens, "a span is wrong");
      previous = span.end;
    }
    for (const trace::Anchor& anchor : prompt.anchors) {
      check_name(anchor.method), check_name(anchor.budget);
      require(anchor.kl >= 0 && !(anchor.predicted < 0), "an anchor is wrong");
    }
  }
  std::set<std::pair<std::string, std::string>> methods;
  for (const replay::ReplayFrame::Method& method : frame.methods) {
    check_name(method.name), check_name(method.params);
    require(!method.name.empty() && methods.emplace(method.name, method.params).second,
            "a method is listed twice, or has no name");
  }
  for (const Budget& budget : frame.budgets) require(budget != Budget(), "a budget is none");
}

void check_frame(const replay::ReplayFrame& frame) {
  check_names(frame);
  require(is_count(frame.model_layers), "a number of layers is wrong");
  require(frame.group >= 1 && frame.group <= most_group, "a number of query heads is wrong");
  for (const replay::ReplayFrame::Prompt& prompt : frame.prompts)
    require(is_count(prompt.context_tokens) && is_count(prompt.scored_tokens), "a number of tokens is wrong");
  for (const replay::Configuration& one : frame.configurations) {
    require(one.method < frame.methods.size() && one.budget < frame.budgets.size(),
            "a configuration has no method or budget");
  }
}

/// After the number of results was checked, because it is that of configurations too.
void check_configurations(const replay::ReplayFrame& frame) {
  std::set<std::tuple<std::size_t, Budget, std::uint32_t>> known;
  for (const replay::Configuration& one : frame.configurations)
    require(known.emplace(one.method, frame.budgets[one.budget], one.seed).second, "a configuration is listed twice");
}

/// Heads are in the order of the plan, each of them once.
void check_heads(const std::vector<replay::HeadResult>& heads, const replay::ReplayFrame& frame) {
  for (const replay::HeadResult& head : heads) {
    require(head.place.prompt < frame.prompts.size(), "a head has no prompt");
    require(is_count(head.place.kv_head) && is_count(head.layer), "the number of a head or layer is wrong");
    require(std::ranges::all_of(head.positions, [](std::int32_t at) { return at >= 0; }),
            "the position of a query is wrong");
    require(std::ranges::adjacent_find(head.positions, std::greater_equal()) == head.positions.end(),
            "the queries are not in order");
  }
  const auto not_ascending = [](const replay::HeadResult& a, const replay::HeadResult& b) {
    return !(a.place < b.place);
  };
  require(std::ranges::adjacent_find(heads, not_ascending) == heads.end(), "the heads are not in order");
}

/// Each head has one cell of each method, and no two cells are the same record.
void check_entries(const std::vector<CellEntry>& entries, std::size_t methods, std::size_t heads) {
  std::set<std::pair<std::uint32_t, std::uint32_t>> known;
  std::set<std::string> keys;
  for (const CellEntry& entry : entries) {
    require(keys.insert(entry.key).second, "two cells are of the same key");
    require(entry.method < methods && !entry.heads.empty(), "a cell has no method or head");
    for (const std::uint32_t head : entry.heads) {
      require(head < heads, "a cell is of an unknown head");
      require(known.emplace(entry.method, head).second, "two cells are of the same head");
    }
  }
  require(known.size() == methods * heads, "a head has no cell of a method");
}

void check_claim(const compare::PaperClaim& claim) {
  for (const std::string& text : {claim.id, claim.text, claim.untestable}) check_name(text);
  require(!claim.metric.name.empty(), "the metric of a claim is unknown");
  for (const compare::Relation& relation : claim.relations) {
    for (const std::string& text : {relation.run, relation.a, relation.b, relation.below}) check_name(text);
    check_amount(relation.within);
    require(relation.tokens >= 0 && relation.tokens <= trace::most_tokens,
            "the tokens of a claim are no number of tokens");
    require(!std::isinf(relation.number), "the number of a claim is infinite");
  }
}

void check_result(const replay::ConfigurationResult& result, std::size_t rows, std::size_t group) {
  check_message(result.reason);
  for (const methods::Note& note : result.notes) check_message(note.text), check_amount(note.count);
  check_bytes(result.bytes);
  for (const double amount :
       {static_cast<double>(result.budget_tokens), result.kept_tokens, result.peak_bytes, result.compress_flops,
        result.attend_flops, result.compress_s, result.attend_s, result.exact_s})
    check_amount(amount);
  if (result.status != replay::Status::ok) return;
  require(result.metrics.size() == rows && result.rel_err_fro.size() == group,
          "a cell has other queries than its layout says");
  for (const replay::MetricRow& row : result.metrics) {
    for (const replay::Metric metric : replay::all_metrics()) store::check_metric(metric, row[metric]);
  }
  require(result.probe_sums.size() <= trace::most_probes, "a cell has too many probes");
  const std::size_t queries = rows / group;
  require(result.residual.empty() || (queries > 0 && result.residual.size() % queries == 0 &&
                                      result.residual.size() / queries <= trace::most_dimensions),
          "a cell has other sketches than its layout says");
  for (const float error : result.rel_err_fro) require(!(error < 0), "an error is negative");
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
  for (const std::string& name : {layout.name, layout.version, layout.commit}) check_name(name);
  require(!layout.steps.empty(), "the sweep has no runs");
  for (const StepLayout& step : layout.steps) {
    check_name(step.run);
    check_frame(step.frame);
    check_heads(step.heads, step.frame);
    check_heads(step.measured, step.frame);
    rows += rows_of(step);
    results += step.heads.size() * step.frame.configurations.size();
    require(rows <= most_rows && results <= most_results, "the sweep has more results than can be computed");
    check_configurations(step.frame);
    check_entries(step.cells, step.frame.methods.size(), step.heads.size());
    check_entries(step.measures, 1, step.measured.size());
  }
  for (const compare::PaperClaim& claim : layout.claims) check_claim(claim);
}

void check_cells(const CellBlock& block, const StepLayout& step, const CellEntry& entry) {
  const auto configurations = static_cast<std::size_t>(
      std::ranges::count(step.frame.configurations, entry.method, &replay::Configuration::method));
  const auto group = static_cast<std::size_t>(step.frame.group);
  require(block.size() == entry.heads.size(), "a cell has other heads than its layout says");
  for (std::size_t h = 0; h < block.size(); ++h) {
    require(block[h].size() == configurations, "a cell has other configurations than its layout says");
    const std::size_t rows = group * step.heads[entry.heads[h]].positions.size();
    for (const replay::ConfigurationResult& result : block[h]) check_result(result, rows, group);
  }
}

void check_measures(const std::vector<measures::MeasureRow>& rows, const StepLayout& step, const CellEntry& entry) {
  const replay::HeadResult& head = step.measured[entry.heads.front()];
  const replay::ReplayFrame& frame = step.frame;
  for (const measures::MeasureRow& row : rows) {
    require(row.sha256 == frame.sha256.substr(0, 12) && row.model == frame.model &&
                row.prompt == frame.prompts[head.place.prompt].id && row.layer == head.layer &&
                row.kv_head == head.place.kv_head,
            "a measure is of another head than its layout says");
    require(row.array == "keys" || row.array == "values" || row.array == "both", "a measure is of no array");
    require(is_count(row.x) && row.count >= 0 && !std::isinf(row.value), "a measure cannot be right");
  }
}

}  // namespace kvbench::sweep
