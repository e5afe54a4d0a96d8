// SPDX-License-Identifier: Apache-2.0
#include <kvbench/compare/predictions.hpp>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include <kvbench/core/error.hpp>
#include <kvbench/core/ordered_map.hpp>
#include <kvbench/methods/contract/method_name.hpp>
#include <kvbench/trace/layer_spread.hpp>

namespace kvbench::compare {
namespace {

/// The layers of the run of a place, and whether they are a sample of those of the model or the ones that are
/// compressed.
std::pair<trace::LayerSpread, replay::PredictedLayers> layers_of(const std::vector<QueryPlace>& places,
                                                                 const QueryPlace& of_run) {
  std::set<std::int64_t> distinct;
  for (const QueryPlace& place : places) {
    if (place.run == of_run.run && place.sha256 == of_run.sha256) distinct.insert(place.layer);
  }
  const std::vector<std::int64_t> layers(distinct.begin(), distinct.end());
  const std::int64_t of = of_run.model_layers;
  const trace::LayerSpread spread = trace::spread_of(layers, of);
  return {spread,
          {.extrapolates = spread == trace::LayerSpread::evenly_spaced,
           .scale = static_cast<double>(of) / static_cast<double>(layers.size())}};
}

QueryValues& skip(QueryValues& values, std::string reason) {
  values.status = replay::Status::skipped;
  values.reason = std::move(reason);
  values.values.clear();
  return values;
}

constexpr const char* unpredicted = "cannot be predicted ({}): measure it in the model";

}  // namespace

Predictions::Predictions(std::shared_ptr<const QueryResults> results, Span span) : results_(std::move(results)) {
  const std::vector<QueryPlace>& all = results_->places();
  const auto text_of = [](const QueryPlace& p) { return std::tuple(p.run, p.sha256, p.prompt, p.protocol); };
  OrderedMap<std::pair<decltype(text_of(all.front())), std::int64_t>, std::vector<std::size_t>> groups;
  std::set<std::tuple<decltype(text_of(all.front())), std::int64_t, Index>> known;
  for (std::size_t p = 0; p < all.size(); ++p) {
    if (results_->scored_tokens(p) == 0) continue;
    if (!known.emplace(text_of(all[p]), all[p].layer, all[p].kv_head).second) continue;
    groups[{text_of(all[p]), span == Span::layer ? all[p].layer : 0}].push_back(p);
  }
  for (auto& [key, heads] : groups.items()) {
    QueryPlace& place = places_.emplace_back(all[heads.front()]);
    factors_.emplace_back().fill(1);
    if (span == Span::layer) {
      layers_.emplace_back();
    } else {
      const auto [spread, layers] = layers_of(all, place);
      layers_.push_back(layers);
      for (const auto& [kind, name] : replay::change_kinds) {
        if (spread != trace::LayerSpread::alone)
          factors_.back()[static_cast<std::size_t>(kind)] = results_->anchor_factor(heads.front(), kind);
      }
    }
    place.layer = key.second, place.kv_head = place.query_head = 0;
    if (span != Span::layer) place.model_layers = 1;  // of which this is all, so that texts alone are a sample
    place.per_block = 1;
    place.positions.clear();  // until a configuration with results is found
    heads_.push_back(std::move(heads));
    for (std::size_t c = 0; c < configurations().size() && place.positions.empty(); ++c) {
      const std::optional<QueryValues> values = read(places_.size() - 1, c);
      if (!values) continue;
      place.positions.resize(values->values.size());
      std::iota(place.positions.begin(), place.positions.end(), 0);
    }
  }
}

std::optional<QueryValues> Predictions::status_of(std::span<const std::size_t> heads, std::size_t configuration) const {
  std::optional<QueryValues> out, unknown;
  double held = 0, read = 0, ok = 0;
  bool dense = true;
  std::map<std::int64_t, replay::StreamError> errors;
  for (const std::size_t head : heads) {
    const std::optional<QueryValues> of_head = results_->read(head, configuration);
    if (!of_head) return std::nullopt;
    if (of_head->status == replay::Status::failed) return of_head;
    if (of_head->status != replay::Status::ok) {
      if (!of_head->dense && !unknown) unknown = of_head;
      if (!out) out = of_head;
      continue;
    }
    if (!out || out->status != replay::Status::ok) out = of_head;
    for (const double error : of_head->values) errors[results_->places()[head].layer].add(error);
    held += of_head->bytes_held, read += of_head->bytes_read, ok += 1;
    dense &= of_head->dense;
  }
  if (unknown) return unknown;
  if (out && ok > 0) out->bytes_held = held / ok, out->bytes_read = read / ok, out->dense = dense;
  if (out) out->values.clear();
  const auto [layer, error] = replay::worst_layer(errors);
  if (const std::string outside = replay::outside_text(layer, error); !outside.empty())
    skip(*out, fmt::format(unpredicted, outside));
  return out;
}

std::optional<QueryValues> Predictions::read(std::size_t place, std::size_t configuration) const {
  std::optional<QueryValues> out = status_of(heads_[place], configuration);
  if (!out || out->status != replay::Status::ok) return out;
  replay::PredictedLayers layers = layers_[place];
  const std::string& method = configurations()[configuration].method;
  if (layers.extrapolates && methods::is_plan(method))
    return skip(*out, "the trace has a sample of the layers, and a plan treats others otherwise; record all layers");
  layers.factor = factors_[place][static_cast<std::size_t>(replay::kind_of(method))];
  if (const std::string failure = replay::failure_text({.factor = layers.factor}); !failure.empty())
    return skip(*out, fmt::format(unpredicted, "anchors, " + failure));
  replay::ProbeSums sums{.seeds = 1};
  for (const std::size_t head : heads_[place]) {
    const std::vector<double> of_head = results_->probe_sums(head, configuration);
    if (of_head.empty()) continue;
    if (sums.probes != 0 && sums.probes != of_head.size())
      throw Error("{}: heads of a text have different numbers of probes", path());
    sums.scored = static_cast<std::size_t>(results_->scored_tokens(head));
    sums.add(results_->places()[head].layer, 0, of_head);
  }
  out->values = unit_predictions(sums, layers);
  const std::size_t expected = places_[place].positions.size();
  if (expected > 0 && out->values.size() != expected) return skip(*out, "the method ran in other layers than others");
  return out;
}

}  // namespace kvbench::compare
