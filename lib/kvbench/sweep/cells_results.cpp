// SPDX-License-Identifier: Apache-2.0
#include <kvbench/sweep/cells_results.hpp>

#include <algorithm>

#include <kvbench/compare/predictions.hpp>
#include <kvbench/core/error.hpp>
#include <kvbench/core/input_file.hpp>
#include <kvbench/core/ordered_map.hpp>
#include <kvbench/replay/records/results.hpp>
#include <kvbench/sweep/merge.hpp>

namespace kvbench::sweep {
namespace {

bool same(const compare::QueryConfiguration& a, const compare::QueryConfiguration& b) {
  return a.method == b.method && a.params == b.params && a.budget == b.budget && a.seed == b.seed;
}

}  // namespace

bool is_cells_file(const std::string& path) { return file_begins_with(path, FrameFile::signature); }

std::vector<std::vector<std::string>> with_shards_joined(const std::vector<std::string>& paths) {
  OrderedMap<std::string, std::vector<std::string>> sweeps;
  for (const std::string& path : paths) {
    const auto layout = is_cells_file(path) ? CellsFile(path, FrameFile::Mode::read).layout() : std::nullopt;
    sweeps[layout ? encode_layout(*layout) : path].push_back(path);
  }
  std::vector<std::vector<std::string>> joined;
  for (auto& [sweep, files] : sweeps.items()) joined.push_back(std::move(files));
  return joined;
}

CellsResults::CellsResults(const std::vector<std::string>& paths, replay::Metric metric) : metric_(metric) {
  std::optional<SweepLayout> layout;
  if (paths.size() > 1) {
    Merged shards = open_shards(paths);
    own_ = std::move(shards.files), layout = std::move(shards.layout);
  } else {
    own_.emplace_back(paths.front(), FrameFile::Mode::read);
    layout = own_.front().layout();
  }
  files_ = own_;
  if (!layout) throw Error("{}: has no cells of a sweep; there is nothing to compare", path());
  layout_ = std::move(*layout);
  add_steps();
}

CellsResults::CellsResults(SweepLayout layout, std::span<const CellsFile> files, replay::Metric metric)
    : files_(files), layout_(std::move(layout)), metric_(metric) {
  add_steps();
}

void CellsResults::add_steps() {
  for (std::size_t s = 0; s < layout_.steps.size(); ++s) add_step(s);
}

void CellsResults::add_step(std::size_t step) {
  const StepLayout& layout = layout_.steps[step];
  const replay::ReplayFrame& frame = layout.frame;
  for (std::size_t h = 0; h < layout.heads.size(); ++h) {
    const replay::HeadResult& head = layout.heads[h];
    const replay::ReplayFrame::Prompt& prompt = frame.prompts[head.place.prompt];
    for (Index g = 0; g < frame.group; ++g) {
      places_.push_back({.run = layout.run,
                         .trace = frame.trace,
                         .sha256 = frame.sha256.substr(0, 12),
                         .model = frame.model,
                         .prompt = prompt.id,
                         .protocol = std::string(name_of(prompt.protocol)),
                         .layer = head.layer,
                         .model_layers = frame.model_layers,
                         .kv_head = head.place.kv_head,
                         .query_head = head.place.kv_head * frame.group + g,
                         .context_tokens = prompt.context_tokens,
                         .positions = head.positions});
      place_heads_.emplace_back(step, h);
    }
  }
  std::vector<std::size_t> counts(frame.methods.size(), 0);  // configurations per method so far
  for (const replay::Configuration& key : frame.configurations) {
    const replay::ReplayFrame::Method& method = frame.methods[key.method];
    const compare::QueryConfiguration configuration{method.name, method.params, frame.budgets[key.budget], key.seed,
                                                    method.seeded};
    auto known = std::ranges::find_if(configurations_,
                                      [&](const compare::QueryConfiguration& c) { return same(c, configuration); });
    if (known == configurations_.end()) {
      known = configurations_.insert(configurations_.end(), configuration);
      slots_.emplace_back();
    }
    slots_[static_cast<std::size_t>(known - configurations_.begin())].push_back(
        {step, key.method, counts[key.method]++});
  }
}

const CellEntry* CellsResults::entry_of(const StepLayout& step, std::size_t method, std::size_t head) const {
  const auto found = std::ranges::find_if(step.cells, [&](const CellEntry& entry) {
    return entry.method == method && std::ranges::find(entry.heads, head) != entry.heads.end();
  });
  return found == step.cells.end() ? nullptr : &*found;
}

const replay::ConfigurationResult* CellsResults::result_of(const Slot& slot, std::size_t head) const {
  const StepLayout& layout = layout_.steps[slot.step];
  const CellEntry* entry = entry_of(layout, slot.method, head);
  const CellsFile* file = entry == nullptr ? nullptr : holder(files_, entry->key);
  if (file == nullptr) return nullptr;
  if (last_key_ != entry->key) {
    last_ = file->cells(layout, *entry);
    last_key_ = entry->key;
  }
  const auto item_head = static_cast<std::size_t>(std::ranges::find(entry->heads, head) - entry->heads.begin());
  return &last_.at(item_head).at(slot.configuration);
}

std::optional<replay::ConfigurationResult> CellsResults::result_in_layer(const Slot& slot, std::size_t head) const {
  const std::vector<replay::HeadResult>& heads = layout_.steps[slot.step].heads;
  const auto layer_of = [](const replay::HeadResult& of) { return std::pair(of.place.prompt, of.place.layer); };
  std::vector<replay::HeadResult> layer;
  std::size_t own = 0;
  for (std::size_t h = 0; h < heads.size(); ++h) {
    if (layer_of(heads[h]) != layer_of(heads[head])) continue;
    if (h == head) own = layer.size();
    const replay::ConfigurationResult* result = result_of(slot, h);
    if (result == nullptr) return std::nullopt;
    layer.push_back({heads[h].place, heads[h].layer, heads[h].positions, {*result}});
  }
  set_layer_metrics(layer);
  return std::move(layer[own].results.front());
}

const CellsResults::Slot* CellsResults::slot_of(std::size_t place, std::size_t configuration) const {
  const auto slot = std::ranges::find(slots_[configuration], place_heads_[place].first, &Slot::step);
  return slot == slots_[configuration].end() ? nullptr : &*slot;
}

std::vector<double> CellsResults::probe_sums(std::size_t place, std::size_t configuration) const {
  const Slot* slot = slot_of(place, configuration);
  if (slot == nullptr) return {};
  const std::lock_guard lock(mutex_);
  const replay::ConfigurationResult* result = result_of(*slot, place_heads_[place].second);
  return result == nullptr ? std::vector<double>() : result->probe_sums;
}

Index CellsResults::scored_tokens(std::size_t place) const {
  const auto [step, head] = place_heads_[place];
  const StepLayout& layout = layout_.steps[step];
  return layout.frame.prompts[layout.heads[head].place.prompt].scored_tokens;
}

double CellsResults::anchor_factor(std::size_t place, replay::ChangeKind kind) const {
  return replay::anchor_ratio(layout_.steps[place_heads_[place].first].frame.prompts, kind).factor;
}

std::optional<compare::QueryValues> CellsResults::read(std::size_t place, std::size_t configuration) const {
  const auto [step, head] = place_heads_[place];
  const Slot* slot = slot_of(place, configuration);
  if (slot == nullptr) return std::nullopt;
  const std::lock_guard lock(mutex_);
  std::optional<replay::ConfigurationResult> of_layer;
  if (is_of_layer(metric_)) of_layer = result_in_layer(*slot, head);
  const replay::ConfigurationResult* found =
      is_of_layer(metric_) ? (of_layer ? &*of_layer : nullptr) : result_of(*slot, head);
  if (found == nullptr) return std::nullopt;
  const replay::ConfigurationResult& result = *found;
  compare::QueryValues out{.status = result.status,
                           .reason = result.reason,
                           .dense = result.dense,
                           .bytes_held = result.bytes.of(CostKind::memory),
                           .bytes_read = result.bytes.of(CostKind::read)};
  if (result.status != replay::Status::ok) return out;
  const std::size_t queries = places_[place].positions.size();
  const auto g =
      static_cast<std::size_t>(places_[place].query_head - places_[place].kv_head * layout_.steps[step].frame.group);
  for (std::size_t i = 0; i < queries; ++i) out.values.push_back(result.metrics.at(g * queries + i)[metric_]);
  return out;
}

compare::ClaimResult test_claim(const compare::PaperClaim& claim, const SweepLayout& layout,
                                std::span<const CellsFile> files) {
  const auto metric = replay::find_metric(claim.metric.name).value_or(replay::Metric::stream_err);
  const auto cells = std::make_shared<CellsResults>(layout, files, metric);
  if (!is_prediction(claim.metric)) return compare::test_claim(claim, {cells.get()});
  const compare::Predictions predictions(cells, compare::Span::all);
  return compare::test_claim(claim, {&predictions});
}

}  // namespace kvbench::sweep
