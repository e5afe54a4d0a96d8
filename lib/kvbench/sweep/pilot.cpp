// SPDX-License-Identifier: Apache-2.0
#include <kvbench/sweep/pilot.hpp>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <filesystem>
#include <optional>
#include <tuple>

#include <unistd.h>

#include <kvbench/core/temporary_folder.hpp>
#include <kvbench/methods/registry.hpp>
#include <kvbench/replay/replay.hpp>
#include <kvbench/store/key.hpp>
#include <kvbench/sweep/codec.hpp>
#include <kvbench/trace/synth.hpp>

namespace kvbench::sweep {
namespace {

constexpr Index most_queries = 64, observed_queries = 64;

/// A temporary file of this process, removed by the destructor.
struct ScratchFile {
  std::string path = (temporary_folder() / fmt::format("kvbench-pilot-{}.h5", ::getpid())).string();
  ~ScratchFile() { ::unlink(path.c_str()); }
};

/// A synthetic trace in such a file.
class ScratchTrace {
 public:
  explicit ScratchTrace(const trace::SynthOptions& options) {
    trace::synthesize(file_.path, options);
    reader_.emplace(file_.path);
  }
  const trace::Reader& reader() const { return *reader_; }

 private:
  ScratchFile file_;
  std::optional<trace::Reader> reader_;
};

trace::SynthOptions shape_of(const SweepStep& step, Index context, Index steps) {
  const trace::TraceInfo& info = step.reader->info();
  trace::SynthOptions options;
  options.pattern = trace::Pattern::sinks;
  options.num_tokens = context + steps;
  options.prompt_tokens = context;
  options.num_queries = step.replay.prompts.front().protocol == replay::Protocol::stream
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
replay::ReplayRequest request_of(const SweepStep& step, Index context, Index steps) {
  const replay::PromptPlan& prompt = step.replay.prompts.front();
  const double share = static_cast<double>(context) / static_cast<double>(prompt.base);
  const auto scaled = [&](Index tokens) {
    return static_cast<Index>(std::lround(share * static_cast<double>(tokens)));
  };
  replay::ReplayRequest request = step.request;
  request.layers.clear();
  request.kv_heads.clear();
  request.prompts.clear();
  request.seeds = {0};
  request.protocol = prompt.protocol;
  request.window = prompt.protocol == replay::Protocol::prefill ? std::optional(steps) : std::nullopt;
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
std::pair<double, replay::ReplayResults> timed(const trace::Reader& reader, const replay::ReplayRequest& request,
                                               const replay::RunOptions& options) {
  const std::clock_t start = std::clock();
  replay::ReplayResults results = replay::replay(reader, request, options);
  return {static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC, std::move(results)};
}

HeadCost cost_of(replay::ReplayResults results, double seconds) {
  HeadCost cost{.seconds = std::max(seconds, 0.0)};
  double attend = 0, all = 0;
  for (const replay::ConfigurationResult& result : results.heads.front().results) {
    cost.ran = cost.ran || result.status == replay::Status::ok;
    attend += result.attend_s;
    all += result.attend_s + result.compress_s;
  }
  cost.attending = all > 0 ? attend / all : 1;
  cost.cells_bytes = static_cast<double>(encode_cells({std::move(results.heads.front().results)}).size());
  return cost;
}

/// Seconds and number of queries of a replay with hardly any work beyond the exact pass.
std::pair<double, Index> shared_cost(const trace::Reader& reader, replay::ReplayRequest request,
                                     const replay::RunOptions& options, Index length) {
  const methods::MethodInfo& sink = methods::find_method("sink");
  request.methods = {{&sink, sink.bind({})}};
  request.budgets = {Budget::tokens(std::min<Index>(8, length))};
  request.protect_first = request.protect_last = 0;
  timed(reader, request, options);  // the first replay warms the processor's caches
  const auto [seconds, results] = timed(reader, request, options);
  return {seconds, static_cast<Index>(results.heads.front().positions.size())};
}

/// The request with one of its methods.
replay::ReplayRequest alone(const replay::ReplayRequest& request, std::size_t method) {
  replay::ReplayRequest one = request;
  one.methods = {request.methods[method]};
  one.excluded.clear();
  for (const auto& [of, budget] : request.excluded) {
    if (of == method) one.excluded.emplace_back(0, budget);
  }
  return one;
}

/// Everything on which the cost of the exact pass depends.
struct ExactInputs {
  Index num_tokens = 0, prompt_tokens = 0, num_queries = 0, query_heads = 0, head_dim = 0, value_dim = 0;
  double speculation_error = 0;  ///< 0: there are no speculated queries
  replay::Protocol protocol = replay::Protocol::prefill;
  Index window = 0, protect_first = 0, protect_last = 0;
  store::RequestInputs request;
  std::string backend;
  int isa = -1;  ///< -1: the best available
};

template <class A>
void visit(A& archive, ExactInputs& v) {
  auto& [num_tokens, prompt_tokens, num_queries, query_heads, head_dim, value_dim, speculation_error, protocol, window,
         protect_first, protect_last, request, backend, isa] = v;
  archive(num_tokens, prompt_tokens, num_queries, query_heads, head_dim, value_dim, speculation_error, protocol, window,
          protect_first, protect_last, request, backend, isa);
}

ExactInputs inputs_of(const trace::SynthOptions& shape, const replay::ReplayRequest& request,
                      const replay::RunOptions& options) {
  return {.num_tokens = shape.num_tokens,
          .prompt_tokens = shape.prompt_tokens,
          .num_queries = shape.num_queries,
          .query_heads = shape.query_heads,
          .head_dim = shape.head_dim,
          .value_dim = shape.value_dim,
          .speculation_error = shape.speculation_error.value_or(0),
          .protocol = request.protocol,
          .window = request.window.value_or(-1),
          .protect_first = request.protect_first,
          .protect_last = request.protect_last,
          .request = store::inputs_of(request),
          .backend = options.backend,
          .isa = options.isa ? static_cast<int>(*options.isa) : -1};
}

/// The same for the cost of the only method of a request.
struct MethodCostInputs {
  ExactInputs shared;
  store::MethodInputs method;
  std::vector<std::string> budgets;
};

template <class A>
void visit(A& archive, MethodCostInputs& v) {
  auto& [shared, method, budgets] = v;
  archive(shared, method, budgets);
}

MethodCostInputs inputs_of(const ExactInputs& shared, const replay::ReplayRequest& one) {
  const replay::MethodChoice& choice = one.methods.front();
  MethodCostInputs inputs{shared, store::inputs_of(choice.info->name, choice.params.text()), {}};
  for (std::size_t b = 0; b < one.budgets.size(); ++b) {
    const bool runs = std::ranges::find(one.excluded, std::pair<std::size_t, std::size_t>(0, b)) == one.excluded.end();
    if (runs) inputs.budgets.push_back(one.budgets[b].text());
  }
  return inputs;
}

}  // namespace

PilotCost Pilots::run(const SweepStep& step, Index context) {
  const replay::PromptPlan& prompt = step.replay.prompts.front();
  const Index length = std::min(context, prompt.base);
  const Index steps = std::clamp<Index>(prompt.tokens - prompt.base, 1, most_queries);
  const trace::SynthOptions shape = shape_of(step, length, steps);
  const replay::ReplayRequest request = request_of(step, length, steps);
  replay::RunOptions options = step.options;
  options.threads = 1;
  std::optional<ScratchTrace> trace;  // written where something is to be measured
  const auto reader = [&]() -> const trace::Reader& {
    if (!trace) trace.emplace(shape);
    return trace->reader();
  };
  const ExactInputs inputs = inputs_of(shape, request, options);
  const auto [shared, fresh] = shared_.try_emplace(store::key_of(inputs));
  if (fresh) std::tie(shared->second.seconds, shared->second.queries) = shared_cost(reader(), request, options, length);
  PilotCost cost{
      .context = length, .queries = shared->second.queries, .shared_seconds = shared->second.seconds, .methods = {}};
  for (std::size_t m = 0; m < request.methods.size(); ++m) {
    const replay::ReplayRequest one = alone(request, m);
    const auto [method, first] = methods_.try_emplace(store::key_of(inputs_of(inputs, one)));
    if (first) {
      auto [seconds, results] = timed(reader(), one, options);
      method->second = cost_of(std::move(results), seconds - cost.shared_seconds);
    }
    cost.methods.push_back(method->second);
  }
  return cost;
}

}  // namespace kvbench::sweep
