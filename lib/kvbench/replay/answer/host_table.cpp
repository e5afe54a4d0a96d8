// SPDX-License-Identifier: Apache-2.0
#include <kvbench/replay/answer/host_table.hpp>

#include <algorithm>

#include <kvbench/methods/contract/answer.hpp>

namespace kvbench {
namespace {

bool same_buffers(const EntryTable& a, const EntryTable& b) {
  return a.per_head == b.per_head && a.per_query == b.per_query && a.accumulate_f64 == b.accumulate_f64 &&
         a.ids.same_as(b.ids) && a.weight_num.same_as(b.weight_num) && a.weight_den.same_as(b.weight_den) &&
         a.own_keys.same_as(b.own_keys) && a.own_values.same_as(b.own_values) && a.groups.same_as(b.groups);
}

}  // namespace

EntryTable to_global(EntryTable table, const TokenMap& map, Backend& backend) {
  if (map.identity()) return table;
  std::vector<std::int32_t> ids = backend.read(table.ids);
  for (std::int32_t& id : ids) {
    if (id >= 0) id = static_cast<std::int32_t>(map.to_global(id));
  }
  table.ids = backend.adopt(std::move(ids), table.ids.rows(), table.ids.cols());
  return table;
}

HostTable::HostTable(const EntryTable& table, Backend& backend)
    : per_head(table.per_head),
      per_query(table.per_query),
      own(table.own_keys.present() || table.own_values.present()),
      fp64(table.accumulate_f64),
      rows(table.ids.rows()),
      width(table.ids.cols()),
      ids(backend.on_host(table.ids)),
      num(backend.on_host(table.weight_num)),
      den(backend.on_host(table.weight_den)),
      groups(backend.on_host(table.groups)),
      used(static_cast<std::size_t>(std::ranges::count_if(ids, [](std::int32_t id) { return id >= 0; }))) {
  if (!weighted()) {
    plain_count = own ? 0 : used;
    return;
  }
  plain.assign(ids.size(), 0);
  for (std::size_t s = 0; s < ids.size(); ++s) {
    if (ids[s] < 0) continue;
    const float wn = num.empty() ? 1 : num[s], wd = den.empty() ? 1 : den[s];
    two_sets |= (wn == 0) != (wd == 0);
    plain[s] = !own && wn == 1 && wd == 1;
    plain_count += plain[s];
  }
}

bool HostTable::increases() const {
  for (Index row = 0; row < rows; ++row) {
    if (!increasing_ids(std::span(ids).subspan(static_cast<std::size_t>(row * width), static_cast<std::size_t>(width))))
      return false;
  }
  return true;
}

const TableStore::Held& TableStore::hold(const EntryTable& local, const TokenMap& map, Backend& backend) {
  const auto known = std::ranges::find_if(held_, [&](const Held& held) { return same_buffers(held.local, local); });
  if (known != held_.end()) return *known;
  EntryTable global = to_global(local, map, backend);
  auto host = std::make_shared<const HostTable>(global, backend);
  return held_.emplace_back(Held{local, std::move(global), std::move(host)});
}

bool TableStore::found_sound(const EntryTables& tables) const {
  return std::ranges::any_of(sound_, [&](const EntryTables& set) {
    return std::ranges::all_of(tables, [&](const EntryTable& table) {
      return std::ranges::any_of(set, [&](const EntryTable& of_set) { return same_buffers(of_set, table); });
    });
  });
}

}  // namespace kvbench
