// SPDX-License-Identifier: Apache-2.0
#include <kvbench/replay/kept/kept_file.hpp>

#include <algorithm>
#include <cmath>

#include <fmt/ranges.h>

#include <kvbench/core/error.hpp>
#include <kvbench/replay/records/raw_schema.hpp>
#include <kvbench/trace/untrusted_file.hpp>

namespace kvbench {
namespace {

using raw::integer_of;
using raw::Numbers;
using raw::Object;
using raw::read_numbers;
using raw::require;

constexpr const char* holds = "kept entries";

struct Limits {
  Index d, dv, group;
  std::uint64_t length;
};

/// Numbers that accompany the ids, `width` per slot; may be absent.
HostView<float> read_beside(const Object& group, const char* name, Index slots, Index width, const Limits& limits) {
  Numbers<float> numbers = read_numbers<float>(group, name, limits.length);
  if (numbers.values.empty()) return {};
  require(static_cast<Index>(numbers.values.size()) == slots * width, group,
          fmt::format("'{}' holds {} numbers, but the ids require {}", name, numbers.values.size(), slots * width));
  require(std::ranges::all_of(numbers.values, [](float x) { return std::isfinite(x); }), group,
          fmt::format("'{}' holds a number that is not finite", name));
  return HostView(std::move(numbers.values));
}

HostTable read_entries(const Object& group, const Limits& limits) {
  HostTable table;
  table.per_head = integer_of(group, "per_head", 0) != 0;
  table.per_query = integer_of(group, "per_query", 0) != 0;
  Numbers<std::int32_t> ids = read_numbers<std::int32_t>(group, "ids", limits.length);
  require(ids.dims.size() == 1 || ids.dims.size() == 2, group,
          "a table needs a dataset 'ids' of shape [rows, width] or [width]");
  table.rows = ids.dims.size() == 2 ? ids.dims[0] : 1;
  table.width = ids.dims.back();
  table.ids = HostView(std::move(ids.values));
  const Index heads = table.per_head ? limits.group : 1;
  require(table.per_query ? table.rows % heads == 0 : table.rows == heads, group,
          fmt::format("'ids' has {} rows, which do not fit {} query heads", table.rows, limits.group));
  require(std::ranges::all_of(table.ids, [](std::int32_t id) { return id >= -1; }), group,
          "an id is below -1 (-1 marks unused slots)");
  const Index slots = table.rows * table.width;
  table.weight_num = read_beside(group, "weight_num", slots, 1, limits);
  table.weight_den = read_beside(group, "weight_den", slots, 1, limits);
  table.own_keys = read_beside(group, "own_keys", slots, limits.d, limits);
  table.own_values = read_beside(group, "own_values", slots, limits.dv, limits);
  return table;
}

HeldTokens read_held(const Object& group, const char* name, const HostTable& table, const Limits& limits) {
  Numbers<std::int32_t> ids = read_numbers<std::int32_t>(group, name, limits.length);
  if (ids.dims.empty()) return {};
  const HeldTokens held{
      .rows = ids.dims.size() == 2 ? ids.dims[0] : 1, .width = ids.dims.back(), .ids = HostView(std::move(ids.values))};
  require(ids.dims.size() <= 2 && (held.rows == 1 || held.rows == table.rows), group,
          fmt::format("'{}' needs the shape [tokens], or [rows, tokens] with the {} rows of 'ids'", name, table.rows));
  return held;
}

KeptTable read_table(const Object& group, const Limits& limits) {
  KeptTable table{
      .entries = read_entries(group, limits), .fast = {}, .slow = {}, .meta_bytes = integer_of(group, "meta_bytes", 0)};
  table.fast = read_held(group, "held", table.entries, limits);
  table.slow = read_held(group, "held_slow", table.entries, limits);
  require(table.meta_bytes >= 0, group, "the attribute 'meta_bytes' is negative");
  const std::int32_t id = table.entry_not_held();
  require(id < 0, group, fmt::format("a query reads token {}, which 'held' and 'held_slow' do not list", id));
  return table;
}

KeptHead read_head(const Object& head, const Object& entries, const Limits& limits) {
  KeptHead kept;
  kept.positions = read_numbers<std::int32_t>(head, "positions", limits.length).values;
  kept.first_query = integer_of(entries, "first_query", 0);
  bool by_query = false;
  for (Index t = 0; entries.has(std::to_string(t)); ++t) {
    kept.tables.push_back(read_table(entries.group(std::to_string(t)), limits));
    by_query |= kept.tables.back().entries.per_query;
  }
  require(!kept.tables.empty(), entries, "it holds no table; the first table is the group '0'");
  require(!by_query || !kept.positions.empty(), head, "tables by query need the dataset 'positions' of the queries");
  return kept;
}

/// The attribute `budget` of each cell; "" where it is missing.
std::vector<std::string> read_budgets(const Object& root) {
  std::vector<std::string> budgets;
  if (!root.has("cells")) return budgets;
  const Object cells = root.group("cells");
  for (Index cell = 0; cells.has(std::to_string(cell)); ++cell) {
    budgets.push_back(cells.group(std::to_string(cell)).text("budget").value_or(""));
  }
  return budgets;
}

/// Reads everything below `heads` that read_head() may read, so that faults of the HDF5 library on a damaged file occur here.
void touch_all(const Object& heads, std::uint64_t length) {
  for (const std::string& name : heads.members()) {
    const Object head = heads.group(name);
    read_numbers<std::int32_t>(head, "positions", length);
    for (Index cell = 0; head.has(std::to_string(cell)); ++cell) {
      const Object group = head.group(std::to_string(cell));
      if (!group.has("entries")) continue;
      const Object entries = group.group("entries");
      integer_of(entries, "first_query", 0);
      for (Index t = 0; entries.has(std::to_string(t)); ++t) {
        const Object table = entries.group(std::to_string(t));
        for (const char* attribute : {"per_head", "per_query", "meta_bytes"}) integer_of(table, attribute, 0);
        for (const char* ids : {"ids", "held", "held_slow"}) read_numbers<std::int32_t>(table, ids, length);
        for (const char* beside : {"weight_num", "weight_den", "own_keys", "own_values"})
          read_numbers<float>(table, beside, length);
      }
    }
  }
}

}  // namespace

KeptFile::KeptFile(std::string path) : path_(std::move(path)), length_(trace::check_superblock(path_)) {
  raw::in_session(holds, [&] {
    const auto describe = [&] {
      const Object root = Object::open_file(path_);
      raw::check_schema(root, path_, holds);
      budgets_ = read_budgets(root);
      heads_.clear();
      const Object heads = root.group("heads");
      for (const std::string& name : heads.members()) {
        const Object head = heads.group(name);
        require(head.text("prompt") && head.integer("layer") && head.integer("kv_head"), head,
                "a head needs the attributes prompt, layer and kv_head");
        heads_.push_back({name, *head.text("prompt"), *head.integer("layer"), *head.integer("kv_head")});
      }
    };
    trace::try_in_child(path_, [&] {
      describe();
      touch_all(Object::open_file(path_).group("heads"), length_);
    });
    describe();
    return 0;
  });
}

Index KeptFile::cell_at(const std::string& budget) const {
  if (std::ranges::all_of(budgets_, &std::string::empty)) return 0;
  const auto cell = std::ranges::find(budgets_, budget);
  if (cell == budgets_.end()) {
    throw Unavailable(
        fmt::format("{} holds no entries for the budget {}; it has {}", path_, budget, fmt::join(budgets_, ", ")));
  }
  if (std::find(cell + 1, budgets_.end(), budget) != budgets_.end()) {
    throw Unavailable(fmt::format("several cells of {} have the budget {}; select one with --set file.cell=C", path_, budget));
  }
  return cell - budgets_.begin();
}

KeptHead KeptFile::read(std::string_view prompt, std::int64_t layer, Index kv_head, Index cell, Index d, Index dv,
                        Index group) const {
  const auto place = std::ranges::find_if(
      heads_, [&](const Place& p) { return p.prompt == prompt && p.layer == layer && p.kv_head == kv_head; });
  if (place == heads_.end()) {
    throw Unavailable(fmt::format("{} holds nothing for prompt '{}', layer {}, kv head {}", path_, prompt, layer, kv_head));
  }
  return raw::in_session(holds, [&] {
    const Object head = Object::open_file(path_).group("heads").group(place->group);
    const std::string name = std::to_string(cell);
    if (!head.has(name) || !head.group(name).has("entries")) {
      throw Unavailable(fmt::format("{} holds no entries of cell {} for prompt '{}', layer {}, kv head {}", path_, cell, prompt,
                                    layer, kv_head));
    }
    return read_head(head, head.group(name).group("entries"), {d, dv, group, length_});
  });
}

}  // namespace kvbench
