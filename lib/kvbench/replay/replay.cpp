// SPDX-License-Identifier: Apache-2.0
#include <kvbench/replay/replay.hpp>

#include <algorithm>
#include <filesystem>
#include <mutex>
#include <numeric>
#include <set>

#include <kvbench/core/error.hpp>
#include <kvbench/core/parallel_for.hpp>
#include <kvbench/replay/answer/cost_budget.hpp>
#include <kvbench/replay/answer/work_item.hpp>
#include <kvbench/replay/exact/read_ahead.hpp>
#include <kvbench/replay/plan/calibration.hpp>
#include <kvbench/replay/records/anchors.hpp>
#include <kvbench/replay/records/figures.hpp>
#include <kvbench/replay/run/devices.hpp>
#include <kvbench/replay/run/head_memory.hpp>

namespace kvbench::replay {
namespace {

/// The size in bytes of the largest work item that a thread may read ahead. It is limited by the spare memory, except
/// on a GPU, where running work items occupy no host memory.
std::size_t read_ahead_bytes(const RunOptions& options, const Backend& backend, const ThreadPlan& plan) {
  constexpr std::size_t mib = std::size_t{1} << 20;
  if (options.read_ahead_bytes) return *options.read_ahead_bytes;
  if (backend.memory()) return 2048 * mib;
  return static_cast<std::size_t>(std::min<double>(256 * mib, plan.spare / plan.threads));
}

/// Throws Error where a method belongs to another trace, as kvbench.entries() does that name theirs.
void check_origin(const MethodChoice& choice, const trace::Reader& reader) {
  const methods::MethodInfo& info = *choice.info;
  if (info.trace_sha256.empty() || info.trace_sha256 == reader.sha256()) return;
  throw Error("{} belongs to a trace with the SHA-256 {}, but {} has {}; replay it on its own trace", info.name,
              info.trace_sha256, reader.path(), reader.sha256());
}

/// Throws Error where no replayed layer has what rows are to be ranked by.
void check_rank_by(const trace::Reader& reader, const ReplayPlan& plan, FigureNumber figure) {
  const trace::TraceInfo& trace = reader.info();
  const FigureNeeds& needs = figure_of(figure).needs;
  const auto has = [&](const HeadPlace& place) {
    const trace::PromptInfo& prompt = trace.prompts[place.prompt];
    const auto planned = std::ranges::lower_bound(plan.prompts, place.prompt, {}, &PromptPlan::prompt);
    return needs.in(prompt.layers[place.layer], scored_tokens(prompt, *planned));
  };
  if (needs.in == nullptr || std::ranges::any_of(plan.heads, has)) return;
  throw Error(
      "`rank_by` is {}, but {} has no {} in the replayed layers; record them with kvbench-dump-hf{}, or leave it out",
      name_of(figure), reader.path(), needs.what, needs.flag);
}

/// The model measured methods by themselves, in all layers, as they are calibrated on the context.
void add_anchors(const trace::PromptInfo& prompt, const ReplayRequest& request, ReplayFrame::Prompt& out) {
  if (!prompt.anchors || out.scored_tokens == 0) return;
  out.anchors = named_as_rows(*prompt.anchors);
  out.anchored = request.protect_first == 0 && request.protect_last == 0 && request.dense_layers == 0 &&
                 request.kv_heads.empty() && !request.calibration && request.decoded == Decoded::method;
}

}  // namespace

ReplayFrame replay_frame(const trace::Reader& reader, const ReplayPlan& plan, const ReplayRequest& request,
                         const RunOptions& options) {
  check_rank_by(reader, plan, request.rank_by);
  ReplayFrame frame;
  frame.trace = std::filesystem::path(reader.path()).filename().string();
  frame.sha256 = reader.sha256();
  frame.model = reader.info().model;
  frame.rope_layout = reader.info().channel_order();
  std::set<std::int64_t> layers;
  for (const HeadPlace& head : plan.heads) layers.insert(reader.info().prompts[head.prompt].layers[head.layer].layer);
  frame.model_layers = reader.info().layers_behind(layers.size());
  frame.group = reader.info().group();
  for (const trace::PromptInfo& prompt : reader.info().prompts)
    frame.prompts.push_back({.id = prompt.id, .name = prompt.name});
  for (const PromptPlan& prompt : plan.prompts) {
    frame.prompts[prompt.prompt].protocol = prompt.protocol;
    frame.prompts[prompt.prompt].context_tokens = budget_base(prompt, request.protect_outside);
    frame.prompts[prompt.prompt].scored_tokens = scored_tokens(reader.info().prompts[prompt.prompt], prompt);
    add_anchors(reader.info().prompts[prompt.prompt], request, frame.prompts[prompt.prompt]);
    for (trace::Span span : reader.info().prompts[prompt.prompt].spans) {
      span.end = std::min<std::int64_t>(span.end, prompt.base);
      if (span.begin < span.end) frame.prompts[prompt.prompt].spans.push_back(std::move(span));
    }
  }
  for (const MethodChoice& choice : request.methods) {
    check_origin(choice, reader);
    frame.methods.push_back({choice.info->name, choice.params.text(), choice.depends_on_seed()});
  }
  frame.budgets = request.budgets;
  frame.configurations = plan.configurations;
  const std::unique_ptr<Backend> backend = make_backend(options);
  frame.device = backend->name();
  frame.isa = backend->isa();
  frame.standalone = request.standalone;
  frame.rank_by = request.rank_by;
  return frame;
}

HeadResult empty_head(const trace::TraceInfo& trace, const ReplayPlan& plan, std::size_t index) {
  const HeadPlace& place = plan.heads[index];
  const auto prompt = std::ranges::lower_bound(plan.prompts, place.prompt, {}, &PromptPlan::prompt);
  const trace::LayerInfo& layer = trace.prompts[place.prompt].layers[place.layer];
  return {.place = place,
          .layer = layer.layer,
          .positions = {std::ranges::lower_bound(layer.query_positions, prompt->context), layer.query_positions.end()},
          .results = std::vector<ConfigurationResult>(plan.configurations.size()),
          .windowed = layer.window > 0};
}

void run_work_items(std::size_t count, const RunOptions& options, const ReplayHooks& hooks,
                    const std::function<void(Backend&, std::size_t, const PartDone&)>& work) {
  const std::size_t threads = thread_count(options);
  std::vector<std::unique_ptr<Backend>> backends(threads);
  std::vector<double> running(threads, 0.0);  // finished parts of the work items in progress
  std::mutex reporting;
  Index finished = 0;
  const auto report = [&] {
    if (!hooks.progress) return;
    hooks.progress(std::accumulate(running.begin(), running.end(), static_cast<double>(finished)),
                   static_cast<Index>(count));
  };
  const auto run = [&](std::size_t i, std::size_t thread) {
    if (!backends[thread]) backends[thread] = make_backend(options);
    work(*backends[thread], i, [&](double part) {
      const std::lock_guard lock(reporting);
      running[thread] = part;
      report();
    });
    const std::lock_guard lock(reporting);
    running[thread] = 0;
    ++finished;
    report();
  };
  parallel_for(count, threads, run, hooks.note);
}

void replay_work_items(const trace::Reader& reader, const ReplayPlan& plan, const ReplayRequest& request,
                       const RunOptions& options, const ReplayHooks& hooks, const WorkItemSink& take) {
  const std::unique_ptr<Backend> backend = make_backend(options);
  const ThreadPlan fitting = plan_threads(reader.info(), plan, options);
  if (hooks.note && !fitting.note.empty()) hooks.note(fitting.note);
  const std::size_t threads = std::min(static_cast<std::size_t>(fitting.threads), plan.work_items.size());
  RunOptions bounded = options;
  bounded.threads = fitting.threads;
  ReadAhead slabs(reader, plan, threads, read_ahead_bytes(options, *backend, fitting));
  std::mutex taking;
  KnownCosts costs;
  const auto failure = [&](const std::string& details) {
    const std::lock_guard lock(taking);
    if (hooks.failure) hooks.failure(details);
  };
  run_work_items(plan.work_items.size(), bounded, hooks, [&](Backend& own, std::size_t u, const PartDone& part_done) {
    const WorkItem& item = plan.work_items[u];
    std::vector<HeadResult> heads;
    for (std::size_t h = 0; h < item.kv_heads.size(); ++h) {
      heads.push_back(empty_head(reader.info(), plan, item.first_result + h));
    }
    try {
      run_work_item({.trace = reader.info(),
                     .plan = plan,
                     .request = request,
                     .options = options,
                     .item = item,
                     .results = heads,
                     .stop = hooks.stop,
                     .part_done = part_done,
                     .failure = failure,
                     .costs = &costs},
                    slabs.take(u, own), own);
    } catch (const OutOfDeviceMemory& error) {
      throw explained(error, {.tokens = item.prompt.tokens, .heads = item.kv_heads.size(), .threads = threads});
    }
    const std::lock_guard lock(taking);
    take(u, std::move(heads));
  });
}

ReplayResults replay(const trace::Reader& reader, const ReplayRequest& request, const RunOptions& options,
                     const ReplayHooks& hooks) {
  const ReplayPlan plan = make_plan(reader.info(), request);
  check_calibration(reader, plan, request);
  for (const std::string& hint : budget_hints(plan, request)) {
    if (hooks.note) hooks.note(hint);
  }
  ReplayResults results{replay_frame(reader, plan, request, options), {}};
  for (std::size_t h = 0; h < plan.heads.size(); ++h) results.heads.push_back(empty_head(reader.info(), plan, h));
  replay_work_items(reader, plan, request, options, hooks, [&](std::size_t u, std::vector<HeadResult> heads) {
    const WorkItem& item = plan.work_items[u];
    for (std::size_t h = 0; h < heads.size(); ++h) {
      for (std::size_t c = 0; c < plan.configurations.size(); ++c) {
        if (!item.runs(plan.configurations[c].method)) continue;
        results.heads[item.first_result + h].results[c] = std::move(heads[h].results[c]);
      }
    }
  });
  set_layer_metrics(results.heads);
  return results;
}

}  // namespace kvbench::replay
