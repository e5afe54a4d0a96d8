// SPDX-License-Identifier: Apache-2.0
#include <kvbench/replay/measure/host_entries.hpp>

#include <algorithm>
#include <utility>

namespace kvbench::replay {
ReadTable::ReadTable(methods::HostTable table)
    : methods::HostTable(std::move(table)),
      used(static_cast<std::size_t>(std::ranges::count_if(ids, [](std::int32_t id) { return id >= 0; }))) {
  if (!weighted()) {
    plain_count = own() ? 0 : used;
    return;
  }
  plain.assign(ids.size(), 0);
  for (std::size_t s = 0; s < ids.size(); ++s) {
    if (ids[s] < 0) continue;
    two_sets |= (num(s) == 0) != (den(s) == 0);
    plain[s] = !own() && num(s) == 1 && den(s) == 1;
    plain_count += plain[s];
  }
}

HostEntries::HostEntries(std::vector<methods::HostTable> tables, Index queries) : queries_(queries) {
  for (methods::HostTable& host : tables) {
    const ReadTable& table = tables_.emplace_back(std::move(host));
    two_sets_ |= table.two_sets;
    all_plain_ &= table.plain_count == table.used;
    any_plain_ |= table.plain_count > 0;
    has_clusters_ |= !table.cluster_ids.empty();
  }
}

bool HostEntries::complete(Index tokens) const {
  Index held = 0;
  for (const ReadTable& table : tables_) {
    if (table.per_head || table.per_query) return false;
    held += static_cast<Index>(table.plain_count);
  }
  return all_plain_ && held == tokens;
}

methods::EntryTables HostEntries::plain_part(Backend& backend) const {
  methods::EntryTables plain;
  for (const ReadTable& table : tables_) {
    if (table.plain_count == 0) continue;
    std::vector<std::int32_t> ids(table.ids.begin(), table.ids.end());
    for (std::size_t s = 0; s < table.plain.size(); ++s) {
      if (table.plain[s] == 0) ids[s] = -1;
    }
    plain.push_back({.per_head = table.per_head,
                     .per_query = table.per_query,
                     .ids = backend.adopt(std::move(ids), table.rows, table.width)});
  }
  return plain;
}

HostEntries::Count HostEntries::count(Index g, Index i, std::int32_t first, std::int32_t last) const {
  Count count;
  each_row(g, i, [&](std::size_t t, std::size_t begin) {
    const ReadTable& table = tables_[t];
    const Index inside =
        count_inside(std::span(table.ids).subspan(begin, static_cast<std::size_t>(table.width)), first, last);
    count.all += inside;
    count.merged += table.merged() ? inside : 0;
  });
  return count;
}

HostEntries::RowsRead HostEntries::rows_read(Index group, Index i, std::int32_t first, std::int32_t last) const {
  RowsRead read;
  for (const ReadTable& table : tables_) {
    if (table.place == methods::Place::resident) continue;
    double& rows = table.place == methods::Place::estimated ? read.estimated : read.retrieved;
    for (Index g = 0; g < (table.per_head ? group : 1); ++g)
      rows += static_cast<double>(count_inside(table.row(methods::table_row(table, g, i, queries_)), first, last));
  }
  return read;
}

std::vector<bool> HostEntries::held(Index g, Index tokens) const {
  std::vector<bool> out(static_cast<std::size_t>(tokens));
  each(g, queries_ - 1, 0, static_cast<std::int32_t>(tokens),
       [&](std::int32_t id, std::size_t, std::size_t) { out[static_cast<std::size_t>(id)] = true; });
  return out;
}

Index count_inside(std::span<const std::int32_t> ids, std::int32_t first, std::int32_t last) {
  std::int32_t count = 0;  // as wide as an id, so that compilers vectorise the loop
  for (const std::int32_t id : ids) count += (id >= first) & (id < last);
  return count;
}

}  // namespace kvbench::replay
