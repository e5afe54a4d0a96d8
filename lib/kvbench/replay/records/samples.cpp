// SPDX-License-Identifier: Apache-2.0
#include <kvbench/replay/records/record.hpp>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <set>

#include <fmt/ranges.h>

#include <kvbench/core/error.hpp>
#include <kvbench/core/paired_test.hpp>
#include <kvbench/methods/contract/method_name.hpp>
#include <kvbench/replay/records/anchors.hpp>
#include <kvbench/replay/records/figures.hpp>
#include <kvbench/replay/records/span_shares.hpp>
#include <kvbench/trace/layer_spread.hpp>

namespace kvbench::replay {

double log_error(double error) { return std::log(std::max(error, least_error)); }

namespace {

// The values of one metric in a row, and their summary.

/// Values with the grid of (block of queries, seed) that the bootstrap resamples.
class Values {
 public:
  explicit Values(std::size_t seeds) : seeds_(seeds) {}
  /// NaN is ignored. query: index among those of the prompt; seed: index among the row's.
  void add(std::size_t prompt, Index query, std::size_t seed, double value);
  Index size() const { return std::ssize(all_); }
  /// NaN where there is no value, and for the interval where it is not requested.
  Summary summary(bool interval) const;
  /// Sums by block only.
  ErrorSums block_sums() const;

 private:
  std::size_t seeds_;
  std::vector<double> all_;
  std::map<std::pair<std::size_t, Index>, std::vector<std::pair<double, double>>> grid_;
};

void Values::add(std::size_t prompt, Index query, std::size_t seed, double value) {
  if (std::isnan(value)) return;
  all_.push_back(value);
  auto& row = grid_[{prompt, query / queries_per_block}];
  row.resize(seeds_);
  row[seed].first += value;
  row[seed].second += 1;
}

Summary Values::summary(bool interval) const {
  if (all_.empty()) return {};
  Summary s{.mean = mean(all_),
            .p1 = quantile(all_, 0.01),
            .p50 = quantile(all_, 0.5),
            .p90 = quantile(all_, 0.9),
            .p99 = quantile(all_, 0.99),
            .max = *std::ranges::max_element(all_),
            .rms = std::sqrt(std::inner_product(all_.begin(), all_.end(), all_.begin(), 0.0) /
                             static_cast<double>(all_.size()))};
  if (!interval) return s;
  const ErrorSums sums = block_sums();
  const Interval ci = bootstrap_mean(sums.blocks, sums.block_counts, seeds_);
  s.lo = ci.lo, s.hi = ci.hi;
  return s;
}

ErrorSums Values::block_sums() const {
  ErrorSums out{.seeds = seeds_};
  for (const auto& [key, row] : grid_) {
    for (const auto& [sum, count] : row) {
      out.blocks.push_back(sum);
      out.block_counts.push_back(count);
    }
  }
  return out;
}

std::vector<std::int64_t> layers_of(const std::vector<Sample>& samples) {
  std::set<std::int64_t> layers;
  for (const Sample& sample : samples) layers.insert(sample.head->layer);
  return {layers.begin(), layers.end()};
}

/// Mean bytes. They are summed before they are divided, so that means of equal whole numbers are whole.
Bytes mean_bytes(const std::vector<Sample>& samples) {
  Bytes mean;
  for (const auto field : {&Bytes::kv, &Bytes::meta, &Bytes::fast, &Bytes::slow, &Bytes::read, &Bytes::full}) {
    for (const Sample& sample : samples) mean.*field += sample.result->bytes.*field;
    mean.*field /= static_cast<double>(samples.size());
  }
  return mean;
}

/// Means and sums of all figures except the metrics and the bytes. Sums are divided once, as in mean_bytes().
void add_costs(const std::vector<Sample>& samples, std::size_t seeds, std::span<const ReplayFrame::Prompt> prompts,
               Record& record) {
  for (const Sample& sample : samples) {
    const ConfigurationResult& result = *sample.result;
    record.context_tokens += static_cast<double>(prompts[sample.head->place.prompt].context_tokens);
    record.budget_tokens += static_cast<double>(result.budget_tokens);
    record.kept_tokens += result.kept_tokens;
    record.peak_bytes = std::max(record.peak_bytes, result.peak_bytes);
    record.compress_flops += result.compress_flops;
    record.attend_flops += result.attend_flops;
    record.compress_s += result.compress_s;
    record.attend_s += result.attend_s;
    record.exact_s += result.exact_s;
  }
  const auto count = static_cast<double>(samples.size());
  record.context_tokens /= count, record.budget_tokens /= count, record.kept_tokens /= count;
  for (const auto field :
       {&Record::compress_flops, &Record::attend_flops, &Record::compress_s, &Record::attend_s, &Record::exact_s}) {
    record.*field /= static_cast<double>(seeds);
  }
}

/// Appends the notes to the reason; notes of equal text become one, with their counts summed.
void add_reason(const std::string& reason, Record& record) {
  if (!record.reason.empty()) record.reason += "; ";
  record.reason += reason;
}

void add_notes(const std::vector<Sample>& samples, Record& record) {
  std::vector<methods::Note> merged;
  for (const Sample& sample : samples) merge_notes(merged, sample.result->notes);
  for (const methods::Note& note : merged) add_reason(describe(note), record);
}

using Transform = double (*)(double);
double itself(double value) { return value; }
double square(double value) { return value * value; }
double log_square(double value) { return 2 * log_error(value); }

/// The values of a metric, transformed.
Values values_of(const std::vector<Sample>& samples, std::size_t seeds, Metric metric, Transform transform) {
  Values values(seeds);
  for (const Sample& s : samples) {
    const auto m = static_cast<Index>(s.head->positions.size());
    for (Index g = s.g; g < s.g + s.heads; ++g) {
      for (Index i = s.i; i < s.i + s.queries; ++i) {
        const float value = s.result->metrics[static_cast<std::size_t>(g * m + i)][metric];
        values.add(s.head->place.prompt, i, s.seed, std::isnan(value) ? NAN : transform(value));
      }
    }
  }
  return values;
}

/// The sums of a transformed metric by block, and by kv head and seed; the samples of a head are adjacent.
ErrorSums sums_of(const std::vector<Sample>& samples, std::size_t seeds, Metric metric, Transform transform) {
  ErrorSums sums = values_of(samples, seeds, metric, transform).block_sums();
  const HeadResult* last = nullptr;
  for (const Sample& s : samples) {
    if (s.head != last) {
      sums.heads.resize(sums.heads.size() + sums.seeds);
      sums.head_counts.resize(sums.heads.size());
      last = s.head;
    }
    const std::size_t at = sums.heads.size() - sums.seeds + s.seed;
    for (const MetricRow& row : s.result->metrics) {
      const double value = row[metric];
      if (std::isnan(value)) continue;
      sums.heads[at] += transform(value);
      sums.head_counts[at] += 1;
    }
  }
  return sums;
}

/// A transformed metric by prompt and layer, in the order of the samples.
std::vector<PlaceError> place_errors(const std::vector<Sample>& samples, Metric metric, Transform transform) {
  std::vector<PlaceError> places;
  for (const Sample& s : samples) {
    const auto is_here = [&](const PlaceError& p) {
      return p.prompt == s.head->place.prompt && p.layer == s.head->layer;
    };
    auto place = std::ranges::find_if(places, is_here);
    if (place == places.end()) place = places.insert(places.end(), {s.head->place.prompt, s.head->layer});
    for (const MetricRow& row : s.result->metrics) {
      const double value = row[metric];
      if (!std::isnan(value)) place->sum += transform(value), place->count += 1;
    }
  }
  return places;
}

TestedSums tested_sums(const std::vector<Sample>& samples, std::size_t seeds, Metric metric, Transform transform,
                       Transform logarithm) {
  return {sums_of(samples, seeds, metric, transform), sums_of(samples, seeds, metric, logarithm),
          place_errors(samples, metric, transform)};
}

void add_metrics(const std::vector<Sample>& samples, std::size_t seeds, Record& record) {
  const Metric error = Metric::rel_err;
  for (const Metric metric : all_metrics()) {
    if (record.query_head && is_of_layer(metric)) continue;
    const Values values = values_of(samples, seeds, metric, itself);
    record.metrics[metric] = values.summary(metric == error);
    if (metric == error) record.query_rows = values.size();
  }
  for (const RankingFigure& figure : ranking_figures) {
    if (record.query_head || figure.metric == nullptr || std::isnan(record.of(*figure.metric).mean)) continue;
    record.tested[*figure.metric] = figure.squares ? tested_sums(samples, seeds, *figure.metric, square, log_square)
                                                   : tested_sums(samples, seeds, *figure.metric, itself, log_error);
  }
  record.blocks = record.errors().sums.blocks_with_values();
  Values fro(seeds);
  for (const Sample& s : samples) {
    for (Index g = s.g; g < s.g + s.heads; ++g)
      fro.add(s.head->place.prompt, 0, s.seed, s.result->rel_err_fro[static_cast<std::size_t>(g)]);
  }
  record.rel_err_fro = fro.summary(false);
}

/// The prompts of which all errors are known: a layer that is kept whole has none, a part that has ended another way
/// has one that nothing says.
std::set<std::size_t> complete_prompts(const std::vector<Sample>& samples) {
  std::set<std::size_t> complete;
  for (const Sample& s : samples) complete.insert(s.head->place.prompt);
  for (const Sample& s : samples) {
    if (s.result->status != Status::ok && !s.result->dense) complete.erase(s.head->place.prompt);
  }
  return complete;
}

/// The sums of probes by prompt, of these prompts.
std::vector<ProbeSums> probe_sums(const std::vector<Sample>& samples, const std::set<std::size_t>& of,
                                  std::size_t seeds, std::span<const ReplayFrame::Prompt> prompts) {
  std::map<std::size_t, ProbeSums> by_prompt;
  for (const Sample& s : samples) {
    const std::size_t prompt = s.head->place.prompt;
    if (s.result->probe_sums.empty() || prompts[prompt].scored_tokens == 0 || !of.contains(prompt)) continue;
    ProbeSums& all = by_prompt[prompt];
    all.scored = static_cast<std::size_t>(prompts[prompt].scored_tokens), all.seeds = seeds;
    all.add(s.head->layer, s.seed, s.result->probe_sums);
  }
  std::vector<ProbeSums> all;
  for (auto& [prompt, sums] : by_prompt) all.push_back(std::move(sums));
  return all;
}

/// By layer, over the texts.
std::map<std::int64_t, StreamError> stream_errors(const std::vector<Sample>& samples) {
  std::map<std::int64_t, StreamError> layers;
  for (const PlaceError& place : place_errors(samples, Metric::stream_err, square)) {
    StreamError& layer = layers[place.layer];
    layer.squares += place.sum, layer.count += place.count;
  }
  return layers;
}

/// Corrects and widens the prediction of a row over all layers by anchors of its kind, and says how.
void add_anchors(std::span<const ReplayFrame::Prompt> prompts, Record& record) {
  const AnchorRatio ratio = anchor_ratio(prompts, kind_of(record.method));
  if (ratio.anchors < 2) return;
  if (const std::string failure = failure_text(ratio); !failure.empty()) {
    record.kl.outside = "anchors, " + failure;
    return;
  }
  record.probed.factor = ratio.factor, record.probed.spread = ratio.spread;
  PredictedKl corrected = predict_kl(record.probes, record.probed);
  corrected.outside = record.kl.outside, corrected.about = record.kl.about;
  record.kl = std::move(corrected);
  record.kl.about += fmt::format("; times {:.2g} by {} anchors", ratio.factor, ratio.anchors);
}

/// What the model measured for the configuration of a row, on its prompts.
double measured_of(const std::vector<Sample>& samples, std::span<const ReplayFrame::Prompt> prompts,
                   const Record& record) {
  std::set<std::size_t> numbers;
  for (const Sample& s : samples) numbers.insert(s.head->place.prompt);
  std::vector<const ReplayFrame::Prompt*> of_row;
  for (const std::size_t number : numbers) of_row.push_back(&prompts[number]);
  const std::string label = record.params.empty() ? record.method : fmt::format("{}[{}]", record.method, record.params);
  return measured_kl(of_row, label, record.budget);
}

/// Predicts the KL of a row over all heads of its layers: of all layers of the model where these are among the replayed
/// ones or evenly spaced, otherwise of the replayed layers alone, as always of a plan, which treats others otherwise.
void add_predicted_kl(const std::vector<Sample>& samples, const std::vector<Sample>& measured, std::size_t seeds,
                      std::span<const ReplayFrame::Prompt> prompts, Record& record) {
  const auto replayed = static_cast<double>(record.replayed_layers.size());
  const auto of = static_cast<double>(record.model_layers);
  const trace::LayerSpread spread = trace::spread_of(record.replayed_layers, record.model_layers);
  const bool sample = !record.layer && spread == trace::LayerSpread::evenly_spaced && !methods::is_plan(record.method);
  record.probes = probe_sums(measured, complete_prompts(samples), seeds, prompts);
  record.probed = {.extrapolates = sample, .scale = of / replayed};
  record.kl = predict_kl(record.probes, record.probed);
  if (std::isnan(record.kl.mean)) return;
  const auto [layer, error] = worst_layer(stream_errors(measured));
  record.kl.outside = outside_text(layer, error);
  record.kl.about = record.layer                        ? "this layer alone"
                    : sample                            ? fmt::format("{} layers, from {}", of, replayed)
                    : spread == trace::LayerSpread::all ? "all layers"
                                                        : "the replayed layers alone";
  const bool all_layers = !record.layer && (sample || spread == trace::LayerSpread::all);
  if (all_layers && !is_outside(record.kl)) add_anchors(prompts, record);
  if (all_layers) record.kl.measured = measured_of(samples, prompts, record);
  std::set<std::size_t> replayed_prompts;
  for (const Sample& s : samples) replayed_prompts.insert(s.head->place.prompt);
  if (record.probes.size() < replayed_prompts.size())
    record.kl.about += fmt::format("; {} of {} texts", record.probes.size(), replayed_prompts.size());
  if (is_large(record.kl)) record.kl.about += "; large";
  if (std::isnan(error)) record.kl.about += "; region unknown";
}

/// The samples with status ok. The cache of a model holds the layers that `dense_layers` keeps whole too; but these say
/// nothing about the method, unless they are all that there is.
struct OkSamples {
  std::vector<Sample> held;      ///< what bytes are the mean of
  std::vector<Sample> measured;  ///< what everything else summarises
  std::vector<Sample> windowed;  ///< what the predicted KL counts, too
};

/// Sets samples of layers with a sliding window apart, where there are others: only methods that round run in both, and
/// their rows are compared with those of all methods.
void set_windowed_apart(OkSamples& ok) {
  const auto windowed = [](const Sample& s) { return s.head->windowed && !s.result->dense; };
  if (std::ranges::all_of(ok.measured, windowed)) return;
  std::ranges::copy_if(ok.measured, std::back_inserter(ok.windowed), windowed);
  std::erase_if(ok.measured, windowed);
  std::erase_if(ok.held, windowed);
}

/// Reports the samples that are not ok in the record. One failed sample fails the row; others are left out as long as a
/// compressed layer remains.
OkSamples keep_ok(const std::vector<Sample>& samples, Record& record) {
  OkSamples ok;
  std::vector<const ConfigurationResult*> ended;
  bool compresses = false;
  for (const Sample& s : samples) {
    compresses |= !s.result->dense || s.result->status != Status::ok;
    if (s.result->status == Status::ok)
      ok.held.push_back(s);
    else
      ended.push_back(s.result);
  }
  std::ranges::copy_if(ok.held, std::back_inserter(ok.measured),
                       [&](const Sample& s) { return s.result->dense != compresses; });
  record.dense = !compresses;
  const auto failed = std::ranges::find(ended, Status::failed, &ConfigurationResult::status);
  if (failed != ended.end()) {
    record.status = Status::failed;
    record.reason = fmt::format("{} of {} parts failed: {}",
                                std::ranges::count(ended, Status::failed, &ConfigurationResult::status), samples.size(),
                                (*failed)->reason);
    return ok;
  }
  const auto infeasible = std::ranges::find(ended, Status::infeasible, &ConfigurationResult::status);
  // What a plan divides does not hold where a part of it costs too much.
  if (ok.measured.empty() || (infeasible != ended.end() && methods::is_plan(record.method))) {
    // What does not run in some layers, and costs too much in the others, costs too much.
    const ConfigurationResult& why = infeasible == ended.end() ? *ended.front() : **infeasible;
    record.status = why.status;
    record.reason = why.reason;
  } else if (!ended.empty()) {
    record.reason = fmt::format("without {} of {} parts: {}", ended.size(), samples.size(), ended.front()->reason);
  }
  return ok;
}

void count(const std::vector<trace::Span>& spans, const std::vector<std::uint64_t>& held, SpanShares& shares) {
  for (const trace::Span& span : spans) {
    double kept = 0;
    for (auto t = static_cast<std::size_t>(span.begin); t < static_cast<std::size_t>(span.end); ++t)
      kept += t / 64 < held.size() && (held[t / 64] >> (t % 64) & 1) != 0;
    shares.add(span.name, kept, static_cast<double>(span.end - span.begin));
  }
}

void add_spans(const std::vector<Sample>& samples, std::span<const ReplayFrame::Prompt> prompts, Record& record) {
  SpanShares kept, by_any;
  std::map<std::pair<std::size_t, std::size_t>, std::vector<std::uint64_t>> held_by_any;  // by prompt and seed
  for (const Sample& s : samples) {
    const std::vector<trace::Span>& spans = prompts[s.head->place.prompt].spans;
    const std::vector<std::uint64_t>& held = s.result->held;
    if (spans.empty()) continue;
    if (held.empty()) return;
    count(spans, held, kept);
    std::vector<std::uint64_t>& all = held_by_any[{s.head->place.prompt, s.seed}];
    all.resize(held.size());
    std::ranges::transform(all, held, all.begin(), std::bit_or<>());
  }
  for (const auto& [key, held] : held_by_any) count(prompts[key.first].spans, held, by_any);
  record.kept_by_span = kept.text(false), record.lost_by_span = by_any.text(true);
}

/// The reason why a row of a query has no metrics, which every answer but that of `exact` has.
void explain_unmeasured(Record& record) {
  if (record.query_rows > 0) return;
  add_reason("the noise floor is measured on a sample of the queries, and this one is not in it", record);
}

/// The reason why a row has no interval, which would be that of a single block and so claim certainty. Rows of one
/// query need none.
void explain_interval(Record& record) {
  const Summary& error = record.of(Metric::rel_err);
  if (record.query || std::isnan(error.mean) || !std::isnan(error.lo)) return;
  add_reason(fmt::format("no interval of the mean: it takes two blocks of {} neighbouring queries", queries_per_block),
             record);
}

}  // namespace

void summarize(const std::vector<Sample>& samples, std::size_t seeds, std::span<const ReplayFrame::Prompt> prompts,
               Record& record) {
  OkSamples ok = keep_ok(samples, record);
  if (record.status != Status::ok) return;
  if (record.method != "exact") set_windowed_apart(ok);
  record.bytes = mean_bytes(ok.held);
  record.layers = layers_of(ok.held);
  record.layer_count = std::ssize(record.layers);
  record.replayed_layers = layers_of(samples);
  if (!record.dense) record.compressed_layers = layers_of(ok.measured);
  add_costs(ok.measured, seeds, prompts, record);
  if (!record.query) add_spans(ok.measured, prompts, record);
  add_metrics(ok.measured, seeds, record);
  std::vector<Sample> counted = ok.measured;
  counted.insert(counted.end(), ok.windowed.begin(), ok.windowed.end());
  if (!record.query_head) add_predicted_kl(samples, counted, seeds, prompts, record);
  if (record.is_part_of_plan())
    add_reason("a plan divides its budget among all layers, of which these hold another share", record);
  add_notes(ok.measured, record);
  explain_unmeasured(record);
  explain_interval(record);
}

Index ErrorSums::blocks_with_values() const {
  Index found = 0;
  for (std::size_t b = 0; b < block_counts.size(); b += seeds) {
    found += std::any_of(block_counts.begin() + static_cast<std::ptrdiff_t>(b),
                         block_counts.begin() + static_cast<std::ptrdiff_t>(b + seeds),
                         [](double count) { return count > 0; });
  }
  return found;
}

}  // namespace kvbench::replay
