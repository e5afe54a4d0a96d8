// SPDX-License-Identifier: Apache-2.0
#include <python/extension/bindings.hpp>

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <apps/common/rows/progress.hpp>
#include <apps/common/stop_signals.hpp>
#include <kvbench/core/error.hpp>
#include <kvbench/replay/plan/calibration.hpp>
#include <kvbench/replay/replay.hpp>
#include <python/extension/choice.hpp>
#include <python/extension/worker.hpp>

namespace kvbench::python {
namespace {

namespace nb = nanobind;

/// By prompt, layer and kv head: scores [n].
using Scores = std::map<std::tuple<std::string, std::int64_t, Index>, std::vector<float>>;

/// [n] on the host, +infinity for tokens that are kept whatever their scores.
std::vector<float> with_kept(const methods::TokenScores& head, Index n, Backend& backend) {
  if (head.scores.rows() > 1) throw methods::Unavailable("query heads have scores of their own; set per=kv_head");
  constexpr float first = std::numeric_limits<float>::infinity();
  std::vector<float> scores = backend.read(head.scores);
  scores.resize(static_cast<std::size_t>(n));
  std::fill_n(scores.begin(), head.sinks, first);
  std::fill_n(scores.rbegin(), head.recent, first);
  return scores;
}

/// The scores of the method of a request, from a replay of one that takes them down and has no cache. Throws Error
/// where it has none, or cannot run in a layer that is asked for.
Scores replayed_scores(const trace::Reader& reader, replay::ReplayRequest request) {
  Scores taken;
  std::mutex mutex;
  methods::MethodInfo info = *request.methods.front().info;
  if (!info.scores)
    throw Error("{} does not rank the tokens of a context by scores; what adakv(M) wraps does", info.name);
  info.plan = nullptr;
  info.prepare = [&](std::span<const methods::HeadPrompt> heads, const methods::Params& params,
                     Backend& backend) -> methods::MakeCaches {
    const std::vector<methods::TokenScores> scores = info.scores(heads, params, backend);
    for (std::size_t h = 0; h < heads.size(); ++h) {
      std::vector<float> own = with_kept(scores[h], heads[h].tokens(), backend);
      const std::lock_guard lock(mutex);
      taken[{heads[h].prompt_group, heads[h].layer.value, heads[h].head.value}] = std::move(own);
    }
    return [](Index, std::uint32_t) -> methods::Caches { throw methods::Infeasible(""); };
  };
  request.methods.front().info = &info;
  request.budgets = {Budget::parse("100%")}, request.seeds = {0};
  app::Progress progress("heads", true);  // which notebooks show
  const replay::ReplayResults results = replay::replay(
      reader, request, {},
      {.progress = [&](double done, Index total) { progress.show(done, total); }, .stop = &app::stop_requested()});
  for (const replay::HeadResult& head : results.heads) {
    const replay::ConfigurationResult& result = head.results.front();
    const bool done = result.status == replay::Status::infeasible && result.reason.empty();
    if (done || (result.dense && request.layers.empty() && !taken.empty())) continue;  // dense: it has a window
    throw Error("{}: layer {} of prompt '{}': {}", info.name, head.layer, results.prompts[head.place.prompt].id,
                result.reason);
  }
  return taken;
}

/// For each kv head its prompt, its layer, and the bytes of its scores. As run_in_thread().
nb::list method_scores(const Choice& choice, const std::string& path, const std::vector<std::string>& prompts,
                       const std::vector<std::int64_t>& layers, const std::string& calibrate, const nb::object& show) {
  const auto scores = std::make_shared<Scores>();  // an interrupted call outlives this one
  const auto compute = [=, method = choice.method, own = choice.own] {
    replay::ReplayRequest request;
    request.methods = {method}, request.prompts = prompts, request.layers = layers;
    if (!calibrate.empty()) request.calibration = replay::open_calibration(calibrate);
    *scores = replayed_scores(trace::Reader(path), std::move(request));
    return 0;
  };
  run_in_thread(compute, show);
  nb::list found;
  for (const auto& [place, of] : *scores)
    found.append(
        nb::make_tuple(std::get<0>(place), std::get<1>(place), nb::bytes(of.data(), of.size() * sizeof(float))));
  return found;
}

}  // namespace

void add_method_scores(nb::module_& module) {
  module.def("method_scores", &method_scores, nb::arg("choice"), nb::arg("path"), nb::arg("prompts"), nb::arg("layers"),
             nb::arg("calibrate"), nb::arg("show").none());
}

}  // namespace kvbench::python
