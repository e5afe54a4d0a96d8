// SPDX-License-Identifier: Apache-2.0
#include <kvbench/sweep/shard.hpp>

#include <algorithm>
#include <charconv>

#include <kvbench/core/error.hpp>

namespace kvbench::sweep {
namespace {

/// Divides the list in order: an item belongs to the shard that contains its midpoint.
class Cutter {
 public:
  Cutter(double total, const Shard& shard) : total_(total), shard_(shard) {}
  bool mine(double weight) {
    const double middle = (before_ + weight / 2) / total_;
    before_ += weight;
    const auto part = static_cast<std::size_t>(middle * static_cast<double>(shard_.count));
    return std::min(part, shard_.count - 1) + 1 == shard_.index;
  }

 private:
  double total_, before_ = 0;
  const Shard& shard_;
};

double weight_of(const SweepStep& step, const replay::HeadPlace& head) {
  return static_cast<double>(step.reader->info().prompts[head.prompt].num_tokens);
}

}  // namespace

Shard Shard::parse(const std::string& text) {
  Shard shard;
  const char* end = text.data() + text.size();
  const auto [slash, first] = std::from_chars(text.data(), end, shard.index);
  const bool good = first == std::errc() && slash != end && *slash == '/';
  const auto [rest, second] = good ? std::from_chars(slash + 1, end, shard.count) : std::from_chars_result{};
  if (!good || second != std::errc() || rest != end || shard.index < 1 || shard.index > shard.count) {
    throw Error("`shard` is '{}'; write the part and the number of parts, such as 1/8 to 8/8", text);
  }
  return shard;
}

double weight_of(const SweepStep& step, const replay::WorkItem& item) {
  const auto configurations = std::ranges::count_if(
      step.replay.configurations, [&](const replay::Configuration& c) { return item.runs(c.method); });
  return static_cast<double>(item.prompt.tokens) * static_cast<double>(item.kv_heads.size()) *
         static_cast<double>(configurations + 1);
}

std::vector<StepWork> select_work(const SweepPlan& plan, const Shard& shard) {
  double total = 0;
  for (const SweepStep& step : plan.steps) {
    for (const replay::WorkItem& item : step.replay.work_items) total += weight_of(step, item);
    for (const replay::HeadPlace& head : step.measured) total += weight_of(step, head);
  }
  Cutter cutter(total, shard);
  std::vector<StepWork> work;
  for (const SweepStep& step : plan.steps) {
    StepWork& mine = work.emplace_back();
    for (std::size_t u = 0; u < step.replay.work_items.size(); ++u) {
      if (cutter.mine(weight_of(step, step.replay.work_items[u]))) mine.work_items.push_back(u);
    }
    for (std::size_t h = 0; h < step.measured.size(); ++h) {
      if (cutter.mine(weight_of(step, step.measured[h]))) mine.measured.push_back(h);
    }
  }
  return work;
}

}  // namespace kvbench::sweep
