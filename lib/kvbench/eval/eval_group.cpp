// SPDX-License-Identifier: Apache-2.0
#include <kvbench/eval/eval_group.hpp>

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include <kvbench/core/statistics.hpp>
#include <kvbench/core/verdict.hpp>
#include <kvbench/eval/scores.hpp>
#include <kvbench/replay/records/span_shares.hpp>

namespace kvbench::eval {
namespace {

/// The position of a value among those seen so far.
template <class T>
std::size_t position_of(std::map<T, std::size_t>& known, const T& value) {
  return known.try_emplace(value, known.size()).first->second;
}

/// A mean of the values that are not NaN.
struct KnownMean {
  double sum = 0, count = 0;
  void add(double value) {
    if (!std::isnan(value)) sum += value, count += 1;
  }
  double value() const { return count == 0 ? NAN : sum / count; }
};

/// The statuses and notes of a row's passes as one.
void fill_status(const std::vector<const PassResult*>& passes, EvalRecord& record) {
  const auto ok = [](const PassResult* pass) { return pass->status == replay::Status::ok; };
  const auto first_ended = std::ranges::find_if_not(passes, ok);
  const auto ended = std::ranges::count_if(passes, [&](const PassResult* pass) { return !ok(pass); });
  if (ended == std::ssize(passes)) {
    record.status = (*first_ended)->status, record.reason = (*first_ended)->reason;
    return;
  }
  std::vector<std::string> notes;
  if (ended > 0)
    notes.push_back(fmt::format("{} of {} passes are missing: {}", ended, passes.size(), (*first_ended)->reason));
  for (const PassResult* pass : passes) {
    if (ok(pass) && !pass->reason.empty() && std::ranges::find(notes, pass->reason) == notes.end())
      notes.push_back(pass->reason);
  }
  for (const std::string& note : notes) record.reason += (record.reason.empty() ? "" : "; ") + note;
}

/// How many seeds have an answer right, which are not independent: the majority of them counts, and a tie as wrong.
struct Vote {
  double seeds = 0, right = 0;
  bool full = false;  ///< whether the full cache has it right
  void add(bool by_full, bool by_seed) { seeds += 1, right += by_seed, full = by_full; }
};
using Votes = std::map<std::pair<std::size_t, std::size_t>, Vote>;  // by document, and number of its answer

Difference test_flips(const Votes& answers, double margin, double& p, double& equal_p) {
  std::int64_t harmful = 0, beneficial = 0;
  for (const auto& [place, vote] : answers) {
    const bool right = 2 * vote.right > vote.seeds;
    harmful += vote.full && !right, beneficial += right && !vote.full;
  }
  p = mcnemar_mid_p(harmful, beneficial);
  equal_p = tost_flips_p(harmful, beneficial, std::ssize(answers), margin);
  if (equal_p <= decided_at) return Difference::none;
  if (p > decided_at) return Difference::undecided;
  return harmful > beneficial ? Difference::worse : Difference::better;
}

void add_reason(EvalRecord& record, const std::string& reason) {
  record.verdict_reason += (record.verdict_reason.empty() ? "" : "; ") + reason;
}

}  // namespace

EvalGroup::EvalGroup(const EvalResults& results, std::vector<const PassResult*> passes, Index turn)
    : results_(&results), all_(std::move(passes)), turn_(turn) {
  std::map<std::size_t, std::size_t> documents;
  std::map<std::uint32_t, std::size_t> seeds;
  for (const PassResult* pass : all_) {
    if (pass->status != replay::Status::ok) continue;
    const EvalDocument& document = results.documents[pass->document];
    if (spans_of(document.document, turn).empty()) continue;
    places_.push_back({pass, sums_of(*results.tasks[document.task], document, *pass, turn),
                       position_of(documents, pass->document),
                       position_of(seeds, results.configurations[pass->configuration].seed)});
  }
  documents_ = documents.size(), seeds_ = seeds.size();
}

double EvalGroup::total(double PassSums::*value) const {
  double sum = 0;
  for (const Place& place : places_) sum += place.sums.*value;
  return sum;
}

bool EvalGroup::has_short() const {
  return std::ranges::none_of(places_, [&](const Place& p) { return document_of(p).without_distant.empty(); });
}

/// The interval of the mean over documents of a figure that is at least zero and has no upper limit.
Interval EvalGroup::positive_interval(std::span<const double> sums, std::span<const double> counts) const {
  std::vector<double> means;
  for (std::size_t d = 0; d < documents_; ++d) {
    double sum = 0, count = 0;
    for (std::size_t at = d * seeds_; at < (d + 1) * seeds_; ++at) sum += sums[at], count += counts[at];
    if (count > 0) means.push_back(sum / count);
  }
  return means.size() < 2 ? Interval{NAN, NAN} : log_normal_interval(means);
}

Estimate EvalGroup::estimate(const MeanOf& mean, bool interval, bool positive) const {
  std::vector<double> sums(documents_ * seeds_), counts(documents_ * seeds_);
  double sum = 0;
  for (const Place& place : places_) {
    const std::size_t at = place.document * seeds_ + place.seed;
    sums[at] = mean.sum(place.sums), counts[at] = place.sums.*mean.count;
    sum += sums[at];
  }
  const double count = total(mean.count);
  if (count == 0 || (mean.needs_short && !has_short())) return {};
  const Interval ends = !interval  ? Interval{NAN, NAN}
                        : positive ? positive_interval(sums, counts)
                                   : bootstrap_mean(sums, counts, seeds_);
  return {sum / count, ends.lo, ends.hi};
}

std::vector<double> EvalGroup::divergences() const {
  std::vector<double> all;
  for (const Place& place : places_) {
    const std::vector<double> more = divergences_of(document_of(place), *place.pass, turn_);
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}

Estimate EvalGroup::estimate(const DamageFigure& figure, const EvalRecord& record) const {
  if (const auto* mean = std::get_if<MeanOf>(&figure.value))
    return estimate(*mean, figure.interval, figure.is_positive());
  if (const auto* kl = std::get_if<KlQuantile>(&figure.value)) return {quantile(divergences(), kl->share), NAN, NAN};
  const auto base = std::ranges::find(damage_figures, std::get<ExpOf>(figure.value).column,
                                      [](const DamageFigure& f) { return f.info.name; });
  const Estimate& of = record.damage[static_cast<std::size_t>(base - damage_figures.begin())];
  return {std::exp(of.mean), std::exp(of.lo), std::exp(of.hi)};
}

void EvalGroup::fill(EvalRecord& record, const EvalRows& rows, bool verdicts) const {
  fill_status(all_, record);
  fill_errors(record, {});
  if (places_.empty()) return;
  record.documents = static_cast<Index>(documents_), record.seeds = static_cast<Index>(seeds_);
  record.compressed_layers = std::ssize(layers());
  const auto per_seed = [&](double PassSums::*value) {
    return static_cast<Index>(std::llround(total(value) / static_cast<double>(seeds_)));
  };
  record.tokens = per_seed(&PassSums::tokens);
  record.key_tokens = per_seed(&PassSums::key_tokens);
  record.answers = per_seed(&PassSums::answers);
  fill_costs(record);
  fill_spans(record);

  for (std::size_t f = 0; f < damage_count; ++f) record.damage[f] = estimate(damage_figures[f], record);
  if (!verdicts) return;
  test_nll(record, rows);
  if (record.answers > 0) test_match(record, rows);
  if (total(&PassSums::records) > 0) test_json(record, rows);
}

void EvalGroup::fill_costs(EvalRecord& record) const {
  const auto count = static_cast<double>(places_.size());
  const auto mean_of = [&](auto value) {
    double sum = 0;
    for (const Place& place : places_) sum += value(*place.pass);
    return sum / count;
  };
  record.budget_tokens = mean_of([](const PassResult& pass) { return pass.budget_tokens; });
  record.kept_tokens = mean_of([](const PassResult& pass) { return pass.kept_tokens; });
  record.seconds = mean_of([](const PassResult& pass) { return pass.seconds; });
  for (double replay::Bytes::*part : {&replay::Bytes::kv, &replay::Bytes::meta, &replay::Bytes::fast,
                                      &replay::Bytes::slow, &replay::Bytes::read, &replay::Bytes::full})
    record.bytes.*part = mean_of([part](const PassResult& pass) { return pass.bytes.*part; });
}

void EvalGroup::fill_spans(EvalRecord& record) const {
  replay::SpanShares kept, held;  // by a kv head, and by any
  for (const Place& place : places_) {
    const std::vector<trace::Span>& messages = document_of(place).document.messages;
    const std::vector<TokensHeld>& known = place.pass->messages;
    if (known.size() != messages.size()) return;
    for (std::size_t m = 0; m < messages.size(); ++m) {
      const auto tokens = static_cast<double>(messages[m].end - messages[m].begin);
      kept.add(messages[m].name, known[m].kept * tokens, tokens);
      held.add(messages[m].name, (1 - known[m].lost) * tokens, tokens);
    }
  }
  record.kept_by_span = kept.text(false), record.lost_by_span = held.text(true);
}

void EvalGroup::test_nll(EvalRecord& record, const EvalRows& rows) const {
  std::vector<double> sums(documents_), counts(documents_), differences;
  for (const Place& place : places_) {
    sums[place.document] += place.sums.nll - place.sums.nll_full;
    counts[place.document] += place.sums.tokens;
  }
  for (std::size_t d = 0; d < documents_; ++d) differences.push_back(sums[d] / counts[d]);
  record.nll_margin = rows.nll_margin;
  record.nll_equal_p = tost_mean_p(differences, rows.nll_margin);
  const double context_helps = (total(&PassSums::nll_short) - total(&PassSums::nll_full)) / total(&PassSums::tokens);
  record.nll_verdict = Difference::undecided;
  if (has_short() && context_helps < rows.nll_margin) {
    record.nll_verdict = Difference::cannot_discriminate;
    record.verdict_reason = fmt::format("the distant context lowers nll only by {:.3g}", context_helps);
  } else if (record.nll_equal_p <= decided_at) {
    record.nll_verdict = Difference::none;
  } else if (documents_ >= 2) {
    const Interval interval = student_interval(differences);
    if (interval.lo > 0) record.nll_verdict = Difference::worse;
    if (interval.hi < 0) record.nll_verdict = Difference::better;
  }
}

void EvalGroup::test_match(EvalRecord& record, const EvalRows& rows) const {
  Votes votes;
  for (const Place& place : places_) {
    const std::vector<AnswerMatch> matches = matches_of(document_of(place), *place.pass);
    for (std::size_t i = 0; i < matches.size(); ++i)
      votes[{place.document, i}].add(matches[i].full, matches[i].compressed);
  }
  record.match_margin = rows.match_margin;
  record.match_verdict = test_flips(votes, rows.match_margin, record.match_p, record.match_equal_p);
  const double full = record.of(damage("match_full")).mean, brief = record.of(damage("match_short")).mean;
  if (full < rows.least_match) {
    record.match_verdict = Difference::cannot_discriminate;
    add_reason(record, fmt::format("the full cache answers only {:.3g} of the questions", full));
  } else if (brief > full - rows.match_margin) {
    record.match_verdict = Difference::cannot_discriminate;
    add_reason(record,
               fmt::format("a short context answers {:.3g} of the questions, the full one {:.3g}", brief, full));
  }
}

void EvalGroup::test_json(EvalRecord& record, const EvalRows& rows) const {
  Votes votes;
  double cut = 0;
  for (const Place& place : places_) {
    votes[{place.document, 0}].add(document_of(place).json == Json::valid, place.pass->json == Json::valid);
    cut += document_of(place).json == Json::cut;
  }
  record.match_margin = rows.match_margin;
  record.json_verdict = test_flips(votes, rows.match_margin, record.json_p, record.json_equal_p);
  const double full = record.of(damage("json_full")).mean;
  if (full >= rows.least_match) return;
  record.json_verdict = Difference::cannot_discriminate;
  add_reason(record, fmt::format("of the full cache's answers only {:.3g} are valid JSON, and {:.3g} have too few "
                                 "tokens to end",
                                 full, cut / total(&PassSums::records)));
}

std::vector<std::int64_t> EvalGroup::layers() const {
  std::set<std::int64_t> numbers;
  for (const Place& place : places_) {
    for (const LayerErrors& errors : place.pass->layers) numbers.insert(errors.layer);
  }
  return {numbers.begin(), numbers.end()};
}

void EvalGroup::fill_errors(EvalRecord& record, std::optional<std::int64_t> layer) const {
  replay::PerMetric<KnownMean> metrics;
  KnownMean drift, residual;
  for (const Place& place : places_) {
    for (const LayerErrors& errors : place.pass->layers) {
      if (layer && errors.layer != *layer) continue;
      for (const replay::Metric m : replay::all_metrics()) metrics[m].add(errors.metrics[m]);
      residual.add(errors.residual);
      if (layer || &errors == &place.pass->layers.back()) drift.add(errors.drift);
    }
  }
  for (const replay::Metric m : replay::all_metrics()) record.metrics[m] = metrics[m].value();
  record.drift = drift.value(), record.residual = residual.value();
}

}  // namespace kvbench::eval
