// SPDX-License-Identifier: Apache-2.0
#include <kvbench/replay/measure/measurements.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <stdexcept>

#include <fmt/format.h>

#include <kvbench/replay/measure/bytes.hpp>

namespace kvbench::replay {
namespace {

/// The two terms of the error, of which `squares` has the norms of everything else.
void add_terms(const RowTruth& truth, const RowState& answer, const RowState& plain, SquaredNorms& squares) {
  // Share of T in the exact mass (w) and in the mass of the answer (w_hat).
  const double w = std::max(0.0, -std::expm1(std::log(plain.den) + plain.max - truth.log_sum_exp));
  const double w_hat = std::max(0.0, -std::expm1(std::log(plain.den) + plain.max - std::log(answer.den) - answer.max));
  squares.mass = squares.direction = 0;
  for (std::size_t c = 0; c < truth.out.size(); ++c) {
    const double exact = truth.out[c], mu_h = component(plain, c), z = component(answer, c);
    // w (mu_T - mu_H) = z* - mu_H, so that nothing is divided by a small w unless the answer gives T mass that it does
    // not have.
    const double mass = (w > 0 ? w_hat / w - 1 : 0) * (exact - mu_h);
    squares.mass += mass * mass;
    squares.direction += (z - exact - mass) * (z - exact - mass);
  }
}

RowState state_row(const HostState& state, std::size_t r) {
  const std::size_t dv = state.num.size() / state.max.size();
  return {state.max[r], state.den[r], std::span(state.num).subspan(r * dv, dv)};
}

/// Adds these tokens. Logits and shares are prefetched, and no branch depends on a token: half of them would be
/// mispredicted.
void add(std::span<const std::int32_t> ids, const BestTokens& best, const float* logits, const float* shares,
         Overlap& overlap) {
  constexpr std::size_t ahead = 64;
  const std::size_t fetching = ids.size() - std::min(ahead, ids.size());
  const auto take = [&](std::int32_t id) {
    overlap.common += best.hold(logits[id], id);
    overlap.mass += static_cast<double>(shares[id]);
  };
  for (std::size_t k = 0; k < fetching; ++k) {
    __builtin_prefetch(logits + ids[k + ahead]);
    __builtin_prefetch(shares + ids[k + ahead]);
    take(ids[k]);
  }
  for (const std::int32_t id : ids.subspan(fetching)) take(id);
}

/// Adds those of `ids` that are in [first, last), which is not empty.
void add_inside(std::span<const std::int32_t> ids, std::int32_t first, std::int32_t last, const BestTokens& best,
                const float* logits, const float* shares, Overlap& overlap) {
  if (count_inside(ids, first, last) == std::ssize(ids)) return add(ids, best, logits, shares, overlap);
  std::array<std::int32_t, 256> inside;
  const std::uint32_t width = static_cast<std::uint32_t>(last) - static_cast<std::uint32_t>(first);
  for (std::size_t begin = 0; begin < ids.size(); begin += inside.size()) {
    std::size_t count = 0;
    for (const std::int32_t id : ids.subspan(begin, std::min(inside.size(), ids.size() - begin))) {
      inside[count] = id;
      count += static_cast<std::uint32_t>(id) - static_cast<std::uint32_t>(first) < width;
    }
    add(std::span(inside).first(count), best, logits, shares, overlap);
  }
}

}  // namespace

SquaredNorms squared_norms(const RowTruth& truth, const RowState& answer, const RowState& plain) {
  SquaredNorms squares;
  for (std::size_t c = 0; c < truth.out.size(); ++c) {
    const double exact = truth.out[c], difference = component(answer, c) - exact, positive = std::max(exact, 1e-8);
    squares.difference += difference * difference;
    squares.exact += exact * exact;
    squares.clamped += positive * positive;
  }
  if (plain.den > 0 && answer.den > 0) add_terms(truth, answer, plain, squares);
  return squares;
}

Overlap overlap_of(const HostEntries& entries, ExactBlock& exact, const RecallRange& range, Index g, Index i,
                   Index entries_i, Backend& backend) {
  if (entries.two_sets()) return {};
  const auto at = static_cast<std::size_t>(i);
  const auto first = std::max(static_cast<std::int32_t>(range.first), exact.visible_first[at]);
  const auto last = std::min(static_cast<std::int32_t>(range.last), exact.visible_last[at]);
  const auto [kept, merged] = entries.count(g, entries_i, first, last);
  if (kept == 0 || merged > 0) return {};
  if (kept == last - first) return {.kept = kept, .common = kept};  // all tokens are kept, and no ranking is needed
  const Index r = g * exact.block.size() + i, n = exact.block.scores.cols();
  const BestTokens best = exact.best(backend, kept, range.first, range.last, r);
  const float* logits = exact.scores.data() + r * n;
  const float* shares = exact.shares.data() + r * n;
  Overlap overlap{.kept = kept, .best_mass = best.mass};
  entries.each_row(g, entries_i, [&](std::size_t t, std::size_t begin) {
    const ReadTable& table = entries.tables()[t];
    add_inside(std::span(table.ids).subspan(begin, static_cast<std::size_t>(table.width)), first, last, best, logits,
               shares, overlap);
  });
  return overlap;
}

Measurements::Measurements(const Head& head, const Options& options, ConfigurationResult& result)
    : head_(&head),
      result_(&result),
      options_(options),
      sets_(head),
      squares_(static_cast<std::size_t>(head.group)),
      steps_(static_cast<std::size_t>(head.group)) {
  const auto rows = static_cast<std::size_t>(head.group * head.queries_per_head());
  result.metrics.resize(rows);
  for (MetricRow& row : result.metrics) row.fill(NAN);
  result.probe_sums.resize(static_cast<std::size_t>(head.probes.count));
  result.piece_sums.resize(static_cast<std::size_t>(HeadProbes::pieces * head.probes.count));
  result.residual.assign(static_cast<std::size_t>(2 * head.queries_per_head() * head.sketch.projected()), NAN);
  if (!options.keep_outputs) return;
  result.raw.emplace().output.resize(rows * static_cast<std::size_t>(head.tokens.values.cols()));
  if (options.keep_exact) result.raw->exact.resize(result.raw->output.size());
}

void Measurements::add(ExactBlock& exact, QueryRun run, const HostEntries& entries, const RecallRange& recall,
                       const Answer& answer, Backend& backend) {
  if (options_.mass != nullptr) sets_.add(entries);
  for (Index g = 0; g < head_->group; ++g) {
    for (Index i = 0; i < run.size(); ++i) {
      add_row(exact, run, entries, recall, answer, g, i, backend);
      count_entries(exact, run, entries, g, i);
    }
  }
}

void Measurements::count(const ExactBlock& exact, QueryRun run, const HostEntries& entries) {
  for (Index g = 0; g < head_->group; ++g) {
    for (Index i = 0; i < run.size(); ++i) count_entries(exact, run, entries, g, i);
  }
}

void Measurements::add_row(ExactBlock& exact, QueryRun run, const HostEntries& entries, const RecallRange& recall,
                           const Answer& set, Index g, Index i, Backend& backend) {
  const auto dv = static_cast<std::size_t>(head_->tokens.values.cols());
  const Index number = exact.begin + run.begin + i;
  const auto query = static_cast<std::size_t>(number);
  const auto exact_row = static_cast<std::size_t>(g * exact.block.size() + run.begin + i);
  const RowTruth truth{std::span(exact.out).subspan(exact_row * dv, dv), exact.log_sum_exp[exact_row],
                       exact.p_norm[exact_row], head_->v_op[query], head_->v_fro[query]};
  const auto answer_row = static_cast<std::size_t>(g * run.size() + i);
  const RowState answer = state_row(set.all, answer_row);
  // Without a common set of tokens the error has no two terms.
  const RowState plain = entries.two_sets() ? RowState{} : state_row(set.plain, answer_row);
  const SquaredNorms squares = squared_norms(truth, answer, plain);
  if (std::isnan(squares.difference)) {  // means would leave it out
    throw std::runtime_error(fmt::format("the answer to query head {} at position {} is not a number",
                                         head_->place.kv_head * head_->group + g,
                                         exact.block.positions[query - exact.begin]));
  }
  const std::size_t row = row_of(exact, run, g, i);
  store_outputs(truth, answer, row);
  if (!result_->probe_sums.empty()) add_probes(truth, answer, g, number);
  if (options_.floor != nullptr && !options_.floor->samples(number)) return;
  const Overlap overlap = overlap_of(entries, exact, recall, g, run.begin + i, i, backend);
  if (recall.sinks > 0) {
    const RecallRange others{.first = recall.first + recall.sinks, .last = recall.last};
    const bool lost = overlap.kept == 0 && overlap_of(entries, exact, others, g, run.begin + i, i, backend).kept > 0;
    result_->sinks_recalled |= lost || overlap.kept > 0;
    recall_lost_ |= lost;
  }
  const bool all_plain = entries.all_plain();
  if (options_.floor == nullptr) return measure({truth, answer, squares, overlap, all_plain}, g, row);
  const RowState floor = options_.floor->row(g, number, backend);
  measure({truth, floor, squared_norms(truth, floor, floor), overlap, all_plain}, g, row);
}

void Measurements::measure(const Answered& answered, Index g, std::size_t row) {
  set_metrics(answered, result_->metrics[row]);
  if (!result_->residual.empty()) add_residual(answered, g, static_cast<Index>(row) % head_->queries_per_head());
  squares_[static_cast<std::size_t>(g)].difference += answered.squares.difference;
  squares_[static_cast<std::size_t>(g)].exact += answered.squares.exact;
}

void Measurements::add_probes(const RowTruth& truth, const RowState& answer, Index g, Index query) {
  const std::size_t dv = truth.out.size();
  const std::span<const float> gradients = head_->probes.at(g, query, static_cast<Index>(dv));
  if (gradients.empty()) return;
  std::vector<double> errors(dv);
  for (std::size_t c = 0; c < dv; ++c) errors[c] = component(answer, c) - double{truth.out[c]};
  double* piece = result_->piece_sums.data() + head_->probes.piece_of(query) * head_->probes.count;
  for (std::size_t r = 0; r * dv < gradients.size(); ++r) {
    const double sum =
        std::inner_product(errors.begin(), errors.end(), gradients.begin() + static_cast<std::ptrdiff_t>(r * dv), 0.0);
    result_->probe_sums[r] += sum;
    piece[r] += sum;
  }
}

/// Query heads are added in their order, from the first one on.
void Measurements::add_residual(const Answered& answered, Index g, Index query) {
  const auto dv = std::ssize(answered.exact.out), columns = head_->sketch.columns;
  const std::span out =
      std::span(result_->residual)
          .subspan(static_cast<std::size_t>(2 * query * columns), 2 * static_cast<std::size_t>(columns));
  if (g == 0) std::ranges::fill(out, 0.0F);
  const std::span errors = out.first(out.size() / 2), exact = out.last(out.size() / 2);
  const double norm = head_->sketch.norms[static_cast<std::size_t>(query)];
  const float* row = head_->sketch.of(g, dv);
  for (std::size_t c = 0; c < answered.exact.out.size(); ++c, row += columns) {
    const double z = answered.exact.out[c];
    const auto error = static_cast<float>((component(answered.answer, c) - z) / norm);
    const auto whole = static_cast<float>(z / norm);
    for (std::size_t k = 0; k < errors.size(); ++k) errors[k] += error * row[k], exact[k] += whole * row[k];
  }
}

void Measurements::store_outputs(const RowTruth& truth, const RowState& answer, std::size_t row) {
  if (!options_.keep_outputs) return;
  const std::size_t dv = truth.out.size();
  if (options_.keep_exact)
    std::ranges::copy(truth.out, result_->raw->exact.begin() + static_cast<std::ptrdiff_t>(row * dv));
  float* const out = result_->raw->output.data() + row * dv;
  for (std::size_t c = 0; c < dv; ++c) out[c] = static_cast<float>(component(answer, c));
}

void Measurements::count_entries(const ExactBlock& exact, QueryRun run, const HostEntries& entries, Index g, Index i) {
  const auto at = static_cast<std::size_t>(run.begin + i);
  const std::int32_t first = exact.visible_first[at], last = exact.visible_last[at];
  const auto used = static_cast<double>(entries.count(g, i, first, last).all);
  entries_ += used;
  if (g == 0) {
    const HostEntries::RowsRead rows = entries.rows_read(head_->group, i, first, last);
    rows_read_.retrieved += rows.retrieved, rows_read_.estimated += rows.estimated;
  }
  query_rows_ += 1;
  if (!entries.has_clusters()) return;
  ClusterStep step = cluster_step(entries, g, i, first, last);
  step.position = exact.block.positions[at];
  step.query = exact.begin + run.begin + i;
  steps_[static_cast<std::size_t>(g)].push_back(std::move(step));
}

/// Sets the metric of every query that has `kept_mass`.
void Measurements::set_mass_ceiling() {
  if (options_.mass == nullptr) return;
  const Index queries = head_->queries_per_head();
  for (Index g = 0; g < head_->group; ++g) {
    const std::optional<Index> kept = sets_.kept(g);
    if (!kept) continue;
    const double value = options_.mass->ceiling(sets_.per_head() ? std::optional(g) : std::nullopt, *kept);
    for (MetricRow& row : std::span(result_->metrics).subspan(static_cast<std::size_t>(g * queries), queries)) {
      if (!std::isnan(row[Metric::kept_mass])) row[Metric::mass_ceiling] = static_cast<float>(value);
    }
  }
}

void Measurements::finish(methods::Footprint footprint, methods::Element kv_element, Index cached) {
  const auto count = static_cast<std::size_t>(head_->queries_per_head());
  for (std::size_t g = 0; g < steps_.size(); ++g) {
    set_cache_hits(steps_[g], std::span(result_->metrics).subspan(g * count, count));
  }
  set_mass_ceiling();
  if (recall_lost_)
    result_->notes.push_back({.text = "no recall, as it has other keys for the first tokens than the trace"});
  result_->kept_tokens = entries_ / query_rows_;
  const double queries = query_rows_ / static_cast<double>(head_->group);
  const Index most = head_->window > 0 ? head_->window : std::numeric_limits<Index>::max();
  const Index fixed = std::min(head_->map.first + head_->map.last, std::max<Index>(0, most - cached)),
              d = head_->tokens.keys.cols(), dv = head_->tokens.value_numbers();
  footprint.push_back({.name = "protected keys", .rows = fixed, .cols = d});
  footprint.push_back({.name = "protected values", .rows = fixed, .cols = dv, .content = methods::Content::values});
  result_->bytes = account(footprint, kv_element, rows_read_.retrieved / queries, std::min(most, cached + fixed), d, dv,
                           rows_read_.estimated / queries);
  for (const SquaredNorms& square : squares_) {
    result_->rel_err_fro.push_back(square.exact > 0 ? static_cast<float>(std::sqrt(square.difference / square.exact))
                                                    : NAN);
  }
}

}  // namespace kvbench::replay
