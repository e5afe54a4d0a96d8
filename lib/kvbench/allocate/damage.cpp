// SPDX-License-Identifier: Apache-2.0
#include <kvbench/allocate/damage.hpp>

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>

#include <fmt/ranges.h>

#include <kvbench/core/error.hpp>
#include <kvbench/replay/exact/head.hpp>
#include <kvbench/replay/plan/layer_choice.hpp>
#include <kvbench/replay/plan/needs.hpp>
#include <kvbench/replay/records/results.hpp>
#include <kvbench/replay/replay.hpp>

namespace kvbench::allocate {
namespace {

using methods::PlanPlace;
using replay::Configuration;
using replay::ConfigurationResult;

/// What is kept of a configuration on a kv head.
struct HeadDamage {
  replay::Status status = replay::Status::skipped;
  std::string reason;
  double held = 0, full = 0;   ///< bytes
  double kept = 0;             ///< share of the tokens that budgets refer to
  std::vector<double> sums;    ///< [pieces][probes], as DocumentDamage::sums
  replay::StreamError stream;  ///< of its layer, at the first head
  bool taken = false;
};

constexpr fmt::format_string<const std::string&, const std::string&> runs_nowhere =
    "`menu`: {} runs at no budget: {}; leave it out";

/// Why a method has no cache at some budget.
struct Ended {
  replay::Status status = replay::Status::skipped;
  std::string reason;
};

bool has_sketches(const trace::PromptInfo& prompt) {
  return std::ranges::all_of(prompt.layers, [](const trace::LayerInfo& layer) {
    return !layer.has_methods() || (layer.output_sketch && layer.residual_norm);
  });
}

/// Throws Error unless the damage to the output of the whole model follows from the trace.
void check_trace(const trace::Reader& reader, bool probed) {
  const trace::TraceInfo& trace = reader.info();
  for (const trace::PromptInfo& prompt : trace.prompts) {
    if (probed != prompt.probes.has_value())
      throw Error(
          "{}: prompt '{}' has {}probes, and other documents have {}; a plan compares their damage: record all with "
          "kvbench-dump-hf --probes 16",
          reader.path(), prompt.id, probed ? "no " : "", probed ? "some" : "none");
    if (!probed && !has_sketches(prompt))
      throw Error(
          "{}: prompt '{}' has neither probes nor sketches of W_O, from which the damage of a layer follows; record "
          "the trace with kvbench-dump-hf --probes 16, or with kvdump",
          reader.path(), prompt.id);
    std::vector<std::int32_t> missing;
    for (std::int32_t l = 0; l < trace.num_layers; ++l) {
      const bool cached = trace.cache_layers.empty() || std::ranges::count(trace.cache_layers, l) > 0;
      if (cached && std::ranges::find(prompt.layers, l, &trace::LayerInfo::layer) == prompt.layers.end())
        missing.push_back(l);
    }
    if (!missing.empty())
      throw Error(
          "{}: prompt '{}' has {} of the {} layers of the model, and a plan needs the damage in each of them; "
          "record the trace with --layers all",
          reader.path(), prompt.id, prompt.layers.size(), trace.num_layers);
  }
}

/// Leaves out what a method that keeps every token in one number of bits would repeat: all budgets but the last.
void exclude_repeated(replay::ReplayRequest& request) {
  for (std::size_t m = 0; m < request.methods.size(); ++m) {
    const auto& [info, params] = request.methods[m];
    const bool one_size = info->kind == methods::Kind::exact ||
                          (info->kind == methods::Kind::quantisation && info->quantiser.levels(params).size() == 1);
    for (std::size_t b = 0; one_size && b + 1 < request.budgets.size(); ++b) request.excluded.emplace_back(m, b);
  }
}

/// The damage of the documents of one trace.
class TraceDamage {
 public:
  TraceDamage(const trace::Reader& reader, const replay::ReplayRequest& request, Damages& damages)
      : reader_(reader), request_(request), plan_(make_plan(reader.info(), request)), damages_(damages) {
    for (const Configuration& c : plan_.configurations) {
      if (entries_.empty() || entries_.back().method != c.method || entries_.back().budget != c.budget)
        entries_.push_back(c);
    }
  }

  /// Throws Error for what the trace alone shows, before minutes of replaying: another model than that of the others,
  /// probes of tokens that are not decoded, a method that can run in no layer of a prompt.
  void check() {
    start_damages();
    for (const replay::PromptPlan& plan : plan_.prompts) {
      const trace::PromptInfo& prompt = reader_.info().prompts[plan.prompt];
      if (scored_in(plan) == 0)
        throw Error(
            "{}: prompt '{}' has probes of tokens that are not decoded; record it with kvbench-dump-hf "
            "--prompt-tokens N --probes 16",
            reader_.path(), prompt.id);
      for (const replay::MethodChoice& method : request_.methods) {
        const std::string why = replay::why_nowhere(method, prompt, plan);
        if (!why.empty()) throw Error(runs_nowhere, method.info->name, why);
      }
    }
  }

  /// After check().
  void add(const replay::RunOptions& options, const replay::ReplayHooks& hooks) {
    replay(options, hooks);
    for (const replay::PromptPlan& prompt : plan_.prompts) add_document(prompt);
  }

  /// Why methods have no cache at some budget, by index.
  const std::map<std::size_t, Ended>& reasons() const { return reasons_; }

 private:
  void replay(const replay::RunOptions& options, const replay::ReplayHooks& hooks) {
    heads_.assign(plan_.heads.size(), std::vector<HeadDamage>(plan_.configurations.size()));
    for (std::size_t h = 0; h < plan_.heads.size(); ++h) waiting_.push_back(empty_head(reader_.info(), plan_, h));
    replay_work_items(reader_, plan_, request_, options, hooks, [&](std::size_t u, std::vector<replay::HeadResult> of) {
      const replay::WorkItem& item = plan_.work_items[u];
      const auto base = static_cast<double>(replay::budget_base(item.prompt, request_.protect_outside));
      for (std::size_t h = 0; h < of.size(); ++h) {
        for (std::size_t c = 0; c < plan_.configurations.size(); ++c) {
          if (!item.runs(plan_.configurations[c].method)) continue;
          ConfigurationResult& r = of[h].results[c];
          heads_[item.first_result + h][c] = {.status = r.status,
                                              .reason = std::move(r.reason),
                                              .held = r.bytes.of(CostKind::memory),
                                              .full = r.bytes.full,
                                              .kept = static_cast<double>(r.budget_tokens) / base,
                                              .sums = std::move(r.piece_sums),
                                              .taken = true};
          waiting_[item.first_result + h].results[c] = std::move(r);
        }
      }
      finish_layer(item);
    });
  }

  /// Once all heads of the layer are there, gives the first one its errors: those of all layers would fill the memory.
  void finish_layer(const replay::WorkItem& item) {
    const auto same_layer = [&](const replay::HeadPlace& place) {
      return place.prompt == item.prompt.prompt && place.layer == item.layer;
    };
    const auto first = std::ranges::find_if(plan_.heads, same_layer) - plan_.heads.begin();
    const auto count = static_cast<std::size_t>(std::ranges::count_if(plan_.heads, same_layer));
    for (const auto& head : std::span(heads_).subspan(static_cast<std::size_t>(first), count)) {
      if (!std::ranges::all_of(head, &HeadDamage::taken)) return;
    }
    const std::span layer = std::span(waiting_).subspan(static_cast<std::size_t>(first), count);
    replay::set_layer_metrics(layer);
    for (std::size_t c = 0; c < plan_.configurations.size(); ++c) {
      HeadDamage& head = heads_[static_cast<std::size_t>(first)][c];
      const std::span<const replay::MetricRow> rows = layer.front().results[c].metrics;
      head.stream = squares_of(rows, replay::Metric::stream_err);
      const replay::StreamError residual = squares_of(rows, replay::Metric::residual_err);
      if (!damages_.probed) head.sums = {std::sqrt(2 * residual.squares / residual.count)};
    }
    for (replay::HeadResult& head : layer) head.results = {};
  }

  static replay::StreamError squares_of(std::span<const replay::MetricRow> rows, replay::Metric metric) {
    replay::StreamError out;
    for (const replay::MetricRow& row : rows) out.add(row[metric]);
    return out;
  }

  std::vector<PlanPlace> places() const {
    const Index heads = damages_.by == Division::layer ? 1 : reader_.info().num_kv_heads;
    std::vector<PlanPlace> all;
    for (const std::int64_t layer : plan_.prompts.front().layers) {
      for (Index h = 0; h < heads; ++h) all.push_back({layer, heads == 1 ? PlanPlace::all_heads : h});
    }
    return all;
  }

  /// The first trace says which places and entries there are.
  void start_damages() {
    const std::vector<PlanPlace> places = this->places();
    if (damages_.places.empty()) {
      damages_.model = reader_.info().model, damages_.model_layers = reader_.info().num_layers;
      damages_.places = places;
      for (const Configuration& c : entries_)
        damages_.menu.push_back({request_.methods[c.method], request_.budgets[c.budget]});
      damages_.cost.assign(places.size() * entries_.size(), 0);
      damages_.stream.resize(damages_.cost.size()), damages_.kept.resize(damages_.cost.size());
    }
    if (damages_.model != reader_.info().model || damages_.places != places)
      throw Error("{}: is a trace of {}, and the first one is of {}; a plan is for one model", reader_.path(),
                  reader_.info().model, damages_.model);
  }

  Index scored_in(const replay::PromptPlan& plan) const {
    return damages_.probed ? replay::scored_tokens(reader_.info().prompts[plan.prompt], plan) : 1;
  }

  void add_document(const replay::PromptPlan& plan) {
    const trace::PromptInfo& prompt = reader_.info().prompts[plan.prompt];
    DocumentDamage document{.name = prompt.name.empty() ? prompt.id : prompt.name,
                            .scored = static_cast<std::size_t>(scored_in(plan)),
                            .probes = damages_.probed ? static_cast<std::size_t>(prompt.probes->count) : 1,
                            .pieces = damages_.probed ? std::size_t{replay::HeadProbes::pieces} : 1};
    for (const PlanPlace& place : damages_.places) {
      for (const Configuration& entry : entries_) {
        std::int64_t& cost = damages_.cost[document.sums.size()];
        add_stream(plan.prompt, place.layer, entry, damages_.stream[document.sums.size()]);
        damages_.kept[document.sums.size()] += kept_in(plan.prompt, place, entry);
        document.sums.push_back(sums_in(plan.prompt, place, entry, document.pieces * document.probes, cost));
      }
    }
    damages_.documents.push_back(std::move(document));
  }

  void add_stream(std::size_t prompt, std::int64_t layer, const Configuration& entry, replay::StreamError& to) const {
    for (std::size_t h = 0; h < plan_.heads.size(); ++h) {
      if (plan_.heads[h].prompt != prompt || !is_in(plan_.heads[h], {layer})) continue;
      for (std::size_t c = 0; c < plan_.configurations.size(); ++c) {
        if (plan_.configurations[c].method != entry.method || plan_.configurations[c].budget != entry.budget) continue;
        to.squares += heads_[h][c].stream.squares, to.count += heads_[h][c].stream.count;
      }
    }
  }

  /// Mean over the heads of a place, and over seeds.
  double kept_in(std::size_t prompt, const PlanPlace& place, const Configuration& entry) const {
    double sum = 0, count = 0;
    for (std::size_t c = 0; c < plan_.configurations.size(); ++c) {
      if (plan_.configurations[c].method != entry.method || plan_.configurations[c].budget != entry.budget) continue;
      for (std::size_t h = 0; h < plan_.heads.size(); ++h) {
        if (plan_.heads[h].prompt == prompt && is_in(plan_.heads[h], place)) sum += heads_[h][c].kept, count += 1;
      }
    }
    return sum / count;
  }

  /// The sums over the heads of a place, in their order. Raises the cost to that of this document; negative where the
  /// entry cannot run.
  std::vector<double> sums_in(std::size_t prompt, const PlanPlace& place, const Configuration& entry,
                              std::size_t numbers, std::int64_t& cost) {
    replay::ProbeSums sums;
    double held = 0, full = 0;
    for (std::size_t c = 0; c < plan_.configurations.size(); ++c) {
      if (plan_.configurations[c].method != entry.method || plan_.configurations[c].budget != entry.budget) continue;
      sums.sums.resize(++sums.seeds * numbers);
      for (std::size_t h = 0; h < plan_.heads.size(); ++h) {
        if (plan_.heads[h].prompt != prompt || !is_in(plan_.heads[h], place)) continue;
        const HeadDamage& head = heads_[h][c];
        if (head.status != replay::Status::ok) return ended(head, entry, cost);
        held += head.held, full += head.full;
        sums.add(place.layer, sums.seeds - 1, head.sums);
      }
    }
    constexpr double rounding = 1e-6;
    const auto own = static_cast<std::int64_t>(std::ceil(held / full * static_cast<double>(whole_place) - rounding));
    if (cost >= 0) cost = std::max(cost, own);
    return std::move(sums.sums);
  }

  bool is_in(const replay::HeadPlace& head, const PlanPlace& place) const {
    return reader_.info().prompts[head.prompt].layers[head.layer].layer == place.layer &&
           (place.kv_head == PlanPlace::all_heads || place.kv_head == head.kv_head);
  }

  /// Throws Error where a method fails; one that costs more than the budget or lacks data here is not chosen.
  std::vector<double> ended(const HeadDamage& head, const Configuration& entry, std::int64_t& cost) {
    if (head.status == replay::Status::failed)
      throw Error("{} fails at {}: {}", request_.methods[entry.method].info->name,
                  request_.budgets[entry.budget].text(), head.reason);
    reasons_[entry.method] = {head.status, head.reason};
    cost = -1;
    return {};
  }

  const trace::Reader& reader_;
  const replay::ReplayRequest& request_;
  replay::ReplayPlan plan_;
  Damages& damages_;
  std::vector<Configuration> entries_;          ///< of the menu, with their first seed
  std::vector<std::vector<HeadDamage>> heads_;  ///< [heads][configurations]
  std::vector<replay::HeadResult> waiting_;     ///< [heads] until their layer is complete
  std::map<std::size_t, Ended> reasons_;
};

/// Whether some place can have the entry, or could if its damage were known.
bool runs(const Damages& damages, std::size_t entry) {
  for (std::size_t l = 0; l < damages.places.size(); ++l) {
    if (damages.cost[l * damages.menu.size() + entry] >= 0) return true;
  }
  return !damages.layers_outside(entry).empty() || !damages.anchors_failure(entry).empty();
}

/// Whether the entry costs in every layer what the one before costs, which is a smaller budget of its method.
bool repeats(const Damages& damages, std::size_t entry) {
  if (entry == 0 || !same(damages.menu[entry].method, damages.menu[entry - 1].method)) return false;
  for (std::size_t l = 0; l < damages.places.size(); ++l) {
    const std::size_t at = l * damages.menu.size() + entry;
    if (damages.cost[at] != damages.cost[at - 1]) return false;
  }
  return true;
}

/// The damages of these entries alone.
void keep(Damages& damages, const std::vector<std::size_t>& entries) {
  const std::size_t all = damages.menu.size();
  const auto kept = [&](auto& table) {
    std::remove_reference_t<decltype(table)> out;
    for (std::size_t l = 0; l < damages.places.size(); ++l) {
      for (const std::size_t e : entries) out.push_back(std::move(table[l * all + e]));
    }
    table = std::move(out);
  };
  const auto kept_of_entries = [&](auto& list) {
    std::remove_reference_t<decltype(list)> out;
    for (const std::size_t e : entries) out.push_back(std::move(list[e]));
    list = std::move(out);
  };
  kept(damages.cost), kept(damages.kept), kept(damages.stream);
  for (DocumentDamage& document : damages.documents) kept(document.sums);
  kept_of_entries(damages.menu);
  if (!damages.anchors.empty()) kept_of_entries(damages.anchors);
}

}  // namespace

void correct(Damages& damages, std::span<const replay::ReplayFrame::Prompt> prompts) {
  if (!damages.probed || prompts.empty()) return;
  const std::size_t entries = damages.menu.size();
  damages.anchors.resize(entries);
  for (std::size_t e = 0; e < entries; ++e) {
    const methods::MethodInfo& info = *damages.menu[e].method.info;
    if (info.kind == methods::Kind::exact) continue;
    replay::AnchorRatio& ratio = damages.anchors[e] = replay::anchor_ratio(prompts, replay::kind_of(info.name));
    const bool fails = !replay::failure_text(ratio).empty();
    for (std::size_t l = 0; l < damages.places.size(); ++l) {
      if (fails) damages.cost[l * entries + e] = -1;
      for (DocumentDamage& document : damages.documents) {
        for (double& c : document.sums[l * entries + e]) c *= std::sqrt(ratio.factor);
      }
    }
  }
}

bool Damages::has_outside() const {
  for (std::size_t e = 0; e < menu.size(); ++e) {
    if (!layers_outside(e).empty() || !anchors_failure(e).empty()) return true;
  }
  return false;
}

std::vector<std::int64_t> Damages::layers_outside(std::size_t entry) const {
  std::vector<std::int64_t> layers;
  for (std::size_t l = 0; l < places.size() && !stream.empty(); ++l) {
    const std::int64_t layer = places[l].layer;
    if (stream[l * menu.size() + entry].is_outside() && (layers.empty() || layers.back() != layer))
      layers.push_back(layer);
  }
  return layers;
}

std::int64_t Damages::budget_of(double share) const {
  constexpr double rounding = 1e-6;
  return static_cast<std::int64_t>(
      std::floor(share * static_cast<double>(whole_place) * static_cast<double>(places.size()) + rounding));
}

std::vector<Budget> budget_grid(std::span<const Budget> others) {
  constexpr int steps = 15;
  std::vector<Budget> grid(others.begin(), others.end());
  for (int k = 0; k <= steps; ++k) {
    const Budget budget = Budget::parse(fmt::format("{:.3f}%mem", 100 * std::exp2(-k / 3.0)));
    if (std::ranges::find(grid, budget) == grid.end()) grid.push_back(budget);
  }
  std::ranges::sort(grid, {}, &Budget::share);
  return grid;
}

Damages measure(std::span<const std::unique_ptr<trace::Reader>> traces, replay::ReplayRequest request, Division by,
                const replay::RunOptions& options, const replay::ReplayHooks& hooks) {
  exclude_repeated(request);
  Damages damages{.by = by};
  std::map<std::size_t, Ended> reasons;
  damages.probed = std::ranges::any_of(traces, [](const auto& reader) {
    return std::ranges::any_of(reader->info().prompts, [](const auto& prompt) { return prompt.probes.has_value(); });
  });
  for (const auto& reader : traces) check_trace(*reader, damages.probed);
  if (by == Division::head && !damages.probed)
    throw Error(
        "`by`: the traces have no probes, and sketches of W_O give the error of all heads of a layer together; divide "
        "by layer, or record probes with kvbench-dump-hf --probes 16");
  std::deque<TraceDamage> waiting;
  for (const auto& reader : traces) waiting.emplace_back(*reader, request, damages).check();
  for (; !waiting.empty(); waiting.pop_front()) {
    waiting.front().add(options, hooks);
    reasons.insert(waiting.front().reasons().begin(), waiting.front().reasons().end());
  }
  for (std::size_t i = 0; i < damages.cost.size(); ++i) {
    if (damages.stream[i].is_outside()) damages.cost[i] = -1;
    damages.kept[i] /= static_cast<double>(damages.documents.size());
  }
  std::vector<replay::ReplayFrame::Prompt> anchored;
  for (const auto& reader : traces)
    std::ranges::move(replay::anchored_prompts(reader->info()), std::back_inserter(anchored));
  correct(damages, anchored);
  std::vector<std::size_t> entries;
  for (std::size_t e = 0; e < damages.menu.size(); ++e) {
    if (runs(damages, e) && !repeats(damages, e)) entries.push_back(e);
  }
  for (std::size_t m = 0; m < request.methods.size(); ++m) {
    const auto of_method = [&](std::size_t e) { return same(damages.menu[e].method, request.methods[m]); };
    if (std::ranges::any_of(entries, of_method)) continue;
    const auto& [status, reason] = reasons[m];
    if (status == replay::Status::infeasible) throw NothingFits(runs_nowhere, request.methods[m].info->name, reason);
    throw Error(runs_nowhere, request.methods[m].info->name, reason);
  }
  keep(damages, entries);
  return damages;
}

}  // namespace kvbench::allocate
