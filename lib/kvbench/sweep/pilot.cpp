// SPDX-License-Identifier: Apache-2.0
#include <kvbench/sweep/pilot.hpp>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <filesystem>

#include <unistd.h>

#include <kvbench/methods/registry.hpp>
#include <kvbench/replay/replay.hpp>
#include <kvbench/sweep/codec.hpp>
#include <kvbench/trace/synth.hpp>

namespace kvbench::sweep {
namespace {

constexpr Index most_queries = 64, observed_queries = 64;

/// A temporary file of this process, removed by the destructor.
struct ScratchFile {
  std::string path = (std::filesystem::temp_directory_path() / fmt::format("kvbench-pilot-{}.h5", ::getpid())).string();
  ~ScratchFile() { ::unlink(path.c_str()); }
};

trace::SynthOptions shape_of(const SweepStep& step, Index context, Index steps) {
  const trace::TraceInfo& info = step.reader->info();
  trace::SynthOptions options;
  options.pattern = trace::Pattern::sinks;
  options.num_tokens = context + steps;
  options.prompt_tokens = context;
  options.num_queries = step.replay.prompts.front().protocol == Protocol::stream
                            ? context + steps
                            : steps + std::min(observed_queries, context - 1);
  options.layers = 1;
  options.kv_heads = 1;
  options.query_heads = info.group();
  options.head_dim = info.head_dim;
  options.value_dim = info.value_dim;
  if (info.prompts.front().layers.front().speculated_queries) options.speculation_error = 0.2;
  return options;
}

/// The request of the step, scaled to the context of the pilot.
ReplayRequest request_of(const SweepStep& step, Index context, Index steps) {
  const PromptPlan& prompt = step.replay.prompts.front();
  const double share = static_cast<double>(context) / static_cast<double>(prompt.base);
  const auto scaled = [&](Index tokens) { return static_cast<Index>(std::lround(share * static_cast<double>(tokens))); };
  ReplayRequest request = step.request;
  request.layers.clear();
  request.kv_heads.clear();
  request.prompts.clear();
  request.seeds = {0};
  request.protocol = prompt.protocol;
  request.window = prompt.protocol == Protocol::prefill ? std::optional(steps) : std::nullopt;
  request.protect_first = scaled(prompt.protect_first);
  request.protect_last = scaled(prompt.protect_last);
  request.dense_layers = 0;
  request.calibration.reset();
  const Index middle = context - request.protect_first - request.protect_last;
  for (Budget& budget : request.budgets) {
    const Index tokens = scaled(budget_tokens(prompt, budget, false));
    if (!budget.is_share()) budget = Budget::tokens(std::clamp<Index>(tokens, 1, std::max<Index>(middle, 1)));
  }
  return request;
}

/// Processor time of a replay, and its results.
std::pair<double, ReplayResults> timed(const trace::Reader& reader, const ReplayRequest& request, const RunOptions& options) {
  const std::clock_t start = std::clock();
  ReplayResults results = replay(reader, request, options);
  return {static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC, std::move(results)};
}

HeadCost cost_of(ReplayResults results, double seconds) {
  HeadCost cost{.seconds = std::max(seconds, 0.0)};
  double attend = 0, all = 0;
  for (const CellResult& cell : results.heads.front().cells) {
    cost.ran = cost.ran || cell.status == Status::ok;
    attend += cell.attend_s;
    all += cell.attend_s + cell.compress_s;
  }
  cost.attending = all > 0 ? attend / all : 1;
  cost.cells_bytes = static_cast<double>(encode_cells({std::move(results.heads.front().cells)}).size());
  return cost;
}

}  // namespace

PilotCost run_pilot(const SweepStep& step, Index context) {
  const PromptPlan& prompt = step.replay.prompts.front();
  const Index length = std::min(context, prompt.base);
  const Index steps = std::clamp<Index>(prompt.tokens - prompt.base, 1, most_queries);
  const ScratchFile file;
  trace::synthesize(file.path, shape_of(step, length, steps));
  const trace::Reader reader(file.path);
  ReplayRequest request = request_of(step, length, steps);
  RunOptions options = step.options;
  options.threads = 1;
  const std::vector<MethodChoice> methods = std::move(request.methods);
  const auto excluded = std::exchange(request.excluded, {});

  PilotCost cost{.context = length, .queries = 0, .shared_seconds = 0, .methods = {}};
  const MethodInfo& sink = find_method("sink");  // with a few tokens it costs almost nothing beyond the exact pass
  ReplayRequest base = request;
  base.methods = {{&sink, sink.bind({})}};
  base.budgets = {Budget::tokens(std::min<Index>(8, length))};
  base.protect_first = base.protect_last = 0;
  timed(reader, base, options);  // the first replay warms the processor's caches
  const auto [seconds, shared] = timed(reader, base, options);
  cost.shared_seconds = seconds;
  cost.queries = static_cast<Index>(shared.heads.front().positions.size());
  for (std::size_t m = 0; m < methods.size(); ++m) {
    request.methods = {methods[m]};
    request.excluded.clear();
    for (const auto& [method, budget] : excluded) {
      if (method == m) request.excluded.emplace_back(0, budget);
    }
    auto [with_method, results] = timed(reader, request, options);
    cost.methods.push_back(cost_of(std::move(results), with_method - cost.shared_seconds));
  }
  return cost;
}

}  // namespace kvbench::sweep
