// SPDX-License-Identifier: Apache-2.0
#include <kvbench/replay/selection.hpp>

#include <algorithm>
#include <limits>

namespace kvbench {

namespace {

HostEntries::Tables read_all(const EntryTables& tables, Backend& backend) {
  HostEntries::Tables read;
  for (const EntryTable& table : tables) read.push_back(std::make_shared<const HostTable>(table, backend));
  return read;
}

}  // namespace

HostEntries::HostEntries(Tables tables, Index queries) : tables_(std::move(tables)), queries_(queries) {
  for (const auto& table : tables_) {
    two_sets_ |= table->two_sets;
    all_plain_ &= table->plain_count == table->used;
    any_plain_ |= table->plain_count > 0;
    has_groups_ |= !table->groups.empty();
  }
}

HostEntries::HostEntries(const EntryTables& tables, Index queries, Backend& backend)
    : HostEntries(read_all(tables, backend), queries) {}

bool HostEntries::complete(Index tokens) const {
  Index held = 0;
  for (const auto& table : tables_) {
    if (table->per_head || table->per_query) return false;
    held += static_cast<Index>(table->plain_count);
  }
  return all_plain_ && held == tokens;
}

EntryTables HostEntries::plain_part(Backend& backend) const {
  EntryTables plain;
  for (const auto& table : tables_) {
    if (table->plain_count == 0) continue;
    std::vector<std::int32_t> ids = table->ids;
    for (std::size_t s = 0; s < table->plain.size(); ++s) {
      if (table->plain[s] == 0) ids[s] = -1;
    }
    plain.push_back({.per_head = table->per_head,
                     .per_query = table->per_query,
                     .ids = backend.adopt(std::move(ids), table->rows, table->width)});
  }
  return plain;
}

void set_recall(const HostEntries& entries, ExactBlock& exact, const RecallRange& range, Index g, Index i, Index entries_i,
                Backend& backend, MetricRow& row) {
  float& recall = row[static_cast<std::size_t>(Metric::recall)];
  float& mass_recall = row[static_cast<std::size_t>(Metric::mass_recall)];
  recall = mass_recall = std::numeric_limits<float>::quiet_NaN();
  if (entries.two_sets()) return;
  const auto at = static_cast<std::size_t>(i);
  const auto first = std::max(static_cast<std::int32_t>(range.first), exact.visible_first[at]);
  const auto last = std::min(static_cast<std::int32_t>(range.last), exact.visible_last[at]);
  Index kept = 0;
  bool merged = false;
  entries.each(g, entries_i, first, last, [&](std::int32_t, std::size_t table, std::size_t) {
    ++kept;
    merged |= entries.own(table);
  });
  if (kept == 0 || merged) return;
  if (kept == last - first) {  // nothing is left out: no ranking of all tokens for that
    recall = mass_recall = 1;
    return;
  }
  const Index r = g * exact.block.size() + i, n = exact.block.scores.cols();
  const BestTokens best = exact.best(backend, kept, range.first, range.last, r);
  const float* logits = exact.scores.data() + r * n;
  const float* shares = exact.shares.data() + r * n;
  Index common = 0;
  double mass = 0;
  entries.each(g, entries_i, first, last, [&](std::int32_t id, std::size_t, std::size_t) {
    common += best.hold(logits[id], id);
    mass += static_cast<double>(shares[id]);
  });
  recall = static_cast<float>(static_cast<double>(common) / static_cast<double>(kept));
  mass_recall = static_cast<float>(best.mass > 0 ? mass / best.mass : 1);
}

}  // namespace kvbench
