// SPDX-License-Identifier: Apache-2.0
#include <kvbench/replay/answer/fitted_entries.hpp>

#include <algorithm>
#include <limits>
#include <map>

#include <kvbench/methods/contract/method.hpp>
#include <kvbench/methods/stages/token_weights.hpp>

namespace kvbench::replay {
namespace {

/// Throws Unavailable where the entries are not the same weighted tokens for all queries.
void check_tokens(const HostEntries& entries) {
  for (const ReadTable& table : entries.tables()) {
    if (table.per_query || table.own() || entries.two_sets())
      throw methods::Unavailable(
          "weights are fitted to tokens that answer all queries as they are, with one weight each; this method answers "
          "by others; omit --refit");
  }
}

/// A table with one row per query head, or one for all of them.
methods::EntryTable weighted_table(const std::vector<std::vector<std::int32_t>>& ids,
                                   const std::vector<std::vector<float>>& weights, Backend& backend) {
  std::size_t width = 1;
  for (const auto& row : ids) width = std::max(width, row.size());
  std::vector<std::int32_t> all_ids;
  std::vector<float> all_weights;
  for (std::size_t r = 0; r < ids.size(); ++r) {
    all_ids.insert(all_ids.end(), ids[r].begin(), ids[r].end());
    all_weights.insert(all_weights.end(), weights[r].begin(), weights[r].end());
    all_ids.resize((r + 1) * width, -1);
    all_weights.resize((r + 1) * width, 1);
  }
  const auto rows = static_cast<Index>(ids.size()), columns = static_cast<Index>(width);
  const Buffer<const float> weight = backend.adopt(std::move(all_weights), rows, columns);
  return {.per_head = rows > 1,
          .ids = backend.adopt(std::move(all_ids), rows, columns),
          .weight_num = weight,
          .weight_den = weight};
}

}  // namespace

FittedEntries::Rows FittedEntries::tokens_of(const HostEntries& entries, Index g) const {
  std::map<std::int32_t, float> weights;
  entries.each(g, 0, first(), last(),
               [&](std::int32_t id, std::size_t t, std::size_t slot) { weights[id] = entries.tables()[t].den(slot); });
  Rows rows;
  for (const auto& [id, weight] : weights) {
    rows.ids.push_back(id);
    rows.weights.push_back(weight);
  }
  return rows;
}

void FittedEntries::observe(const ExactBlock& exact, QueryRun run, const HostEntries& entries) {
  check_tokens(entries);
  const Index m = exact.block.size(), n = exact.block.scores.cols(), dv = head_->tokens.values.cols();
  const Index end = std::min(run.end, first_measured(*head_) - exact.begin);
  for (Index g = 0; g < head_->group; ++g) {
    Rows& rows = rows_[static_cast<std::size_t>(g)];
    Rows now = tokens_of(entries, g);
    if (started_ && now.ids != rows.ids)
      throw methods::Unavailable(
          "its tokens of the context change while it decodes, and weights are fitted to one set; use "
          "--protocol prefill, or --decoded keep");
    if (!started_) {
      methods::WeightFit::check_size(first_measured(*head_) * head_->group, head_->map.middle, std::ssize(now.ids));
      rows = std::move(now);
    }
    for (Index i = run.begin; i < end; ++i) {
      const float* const shares = exact.shares.data() + (g * m + i) * n + first();
      rows.shares.insert(rows.shares.end(), shares, shares + head_->map.middle);
      const float* const output = exact.out.data() + (g * m + i) * dv;
      rows.outputs.insert(rows.outputs.end(), output, output + dv);
    }
  }
  per_head_ |= std::ranges::any_of(entries.tables(), &ReadTable::per_head);
  started_ = true;
}

void FittedEntries::fit(Backend& backend) {
  fitted_ = true;
  if (!per_head_) return fit_rows(0, head_->group, backend);
  for (Index g = 0; g < head_->group; ++g) fit_rows(g, g + 1, backend);
}

/// Fits the weights of the set that query heads [begin, end) have in common.
void FittedEntries::fit_rows(Index begin, Index end, Backend& backend) {
  std::vector<float> shares, outputs;
  for (Index g = begin; g < end; ++g) {
    const Rows& rows = rows_[static_cast<std::size_t>(g)];
    shares.insert(shares.end(), rows.shares.begin(), rows.shares.end());
    outputs.insert(outputs.end(), rows.outputs.begin(), rows.outputs.end());
  }
  const std::vector<float> values = backend.read(head_->tokens.values.slice(head_->map.first, head_->map.middle));
  const methods::WeightFit fit(head_->tokens.values.cols(), std::move(shares), values, outputs);
  Rows& common = rows_[static_cast<std::size_t>(begin)];
  std::vector<Index> tokens;
  for (const std::int32_t id : common.ids) tokens.push_back(id - first());
  const std::vector<double> weights =
      fit.weights(tokens, std::vector<double>(common.weights.begin(), common.weights.end()));
  common.weights.assign(weights.begin(), weights.end());
  common.shares.clear();
  common.shares.shrink_to_fit();
}

methods::EntryTables FittedEntries::tables(const HostEntries& entries, Backend& backend) {
  if (!fitted_) fit(backend);
  const std::size_t sets = per_head_ ? rows_.size() : 1;
  std::vector<std::vector<std::int32_t>> ids(sets), later_ids(sets);
  std::vector<std::vector<float>> weights(sets), later_weights(sets);
  for (std::size_t g = 0; g < sets; ++g) {
    for (std::size_t k = 0; k < rows_[g].ids.size(); ++k) {
      if (!(rows_[g].weights[k] > 0)) continue;
      ids[g].push_back(rows_[g].ids[k]);
      weights[g].push_back(rows_[g].weights[k]);
    }
    entries.each(static_cast<Index>(g), 0, last(), std::numeric_limits<std::int32_t>::max(),
                 [&](std::int32_t id, std::size_t t, std::size_t slot) {
                   later_ids[g].push_back(id);
                   later_weights[g].push_back(entries.tables()[t].den(slot));
                 });
  }
  methods::EntryTables tables = {weighted_table(ids, weights, backend)};
  const auto empty = [](const std::vector<std::int32_t>& row) { return row.empty(); };
  if (!std::ranges::all_of(later_ids, empty)) tables.push_back(weighted_table(later_ids, later_weights, backend));
  return tables;
}

}  // namespace kvbench::replay
