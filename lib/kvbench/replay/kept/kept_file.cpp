// SPDX-License-Identifier: Apache-2.0
#include <kvbench/replay/kept/kept_file.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <tuple>

#include <fmt/ranges.h>

#include <kvbench/core/error.hpp>
#include <kvbench/core/name.hpp>
#include <kvbench/replay/records/raw_schema.hpp>
#include <kvbench/trace/guard/input_file.hpp>

namespace kvbench::replay {
namespace {

using raw::InputObject;
using raw::integer_of;
using raw::Numbers;
using raw::read_numbers;
using raw::require;
using trace::h5::Extent;

/// The datasets of a table by element type.
constexpr std::array id_sets = {"ids", "held", "held_slow"};
constexpr std::array number_sets = {"weight_num", "weight_den", "own_keys", "own_values"};

/// Numbers that accompany the ids, `width` per slot; may be absent.
HostView<float> read_beside(const InputObject& group, const char* name, Index slots, Index width) {
  Numbers<float> numbers = read_numbers<float>(group, name);
  if (numbers.values.empty()) return {};
  require(static_cast<Index>(numbers.values.size()) == slots * width, group,
          fmt::format("'{}' holds {} numbers, but the ids require {}", name, numbers.values.size(), slots * width));
  require(std::ranges::all_of(numbers.values, [](float x) { return std::isfinite(x); }), group,
          fmt::format("'{}' holds a number that is not finite", name));
  return HostView(std::move(numbers.values));
}

/// Token numbers, which are absent where the group lacks the dataset.
Numbers<std::int32_t> read_ids(const InputObject& group, const char* name, const KeptShape& shape) {
  Numbers<std::int32_t> ids = read_numbers<std::int32_t>(group, name);
  for (const std::int32_t id : ids.values) {
    require(id >= -1, group, fmt::format("'{}' has the id {}; use -1 for unused slots", name, id));
    require(id < shape.tokens, group,
            fmt::format("'{}' has the id {}, but the prompt has {} tokens; ids are positions in the prompt, the first "
                        "of which is 0",
                        name, id, shape.tokens));
  }
  return ids;
}

methods::HostTable read_entries(const InputObject& group, const KeptShape& shape) {
  require(integer_of(group, "rows_by_token", 0) == 0, group,
          "the full cache behind these entries is stored in fewer bits, and the file does not hold its rows");
  methods::HostTable table;
  table.per_head = integer_of(group, "per_head", 0) != 0;
  table.per_query = integer_of(group, "per_query", 0) != 0;
  Numbers<std::int32_t> ids = read_ids(group, "ids", shape);
  require(ids.dims.size() == 1 || ids.dims.size() == 2, group,
          "a table needs a dataset 'ids' of shape [rows, width] or [width]");
  table.rows = ids.dims.size() == 2 ? ids.dims[0] : 1;
  table.width = ids.dims.back();
  table.ids = HostView(std::move(ids.values));
  const Index heads = table.per_head ? shape.group : 1;
  require(table.per_query ? table.rows % heads == 0 : table.rows == heads, group,
          fmt::format("'ids' has {} rows, which do not fit {} query heads", table.rows, shape.group));
  const Index slots = table.rows * table.width;
  table.weight_num = read_beside(group, "weight_num", slots, 1);
  table.weight_den = read_beside(group, "weight_den", slots, 1);
  table.own_keys = read_beside(group, "own_keys", slots, shape.d);
  table.own_values = read_beside(group, "own_values", slots, shape.dv);
  return table;
}

HeldTokens read_held(const InputObject& group, const char* name, const methods::HostTable& table,
                     const KeptShape& shape) {
  Numbers<std::int32_t> ids = read_ids(group, name, shape);
  if (ids.dims.empty()) return {};
  const HeldTokens held{
      .rows = ids.dims.size() == 2 ? ids.dims[0] : 1, .width = ids.dims.back(), .ids = HostView(std::move(ids.values))};
  require(ids.dims.size() <= 2 && (held.rows == 1 || held.rows == table.rows), group,
          fmt::format("'{}' needs the shape [tokens], or [rows, tokens] with the {} rows of 'ids'", name, table.rows));
  const std::int32_t twice = held.listed_twice();
  require(twice < 0, group, fmt::format("'{}' lists token {} twice", name, twice));
  return held;
}

KeptTable read_table(const InputObject& group, const KeptShape& shape) {
  KeptTable table{
      .entries = read_entries(group, shape), .fast = {}, .slow = {}, .meta_bytes = integer_of(group, "meta_bytes", 0)};
  table.fast = read_held(group, "held", table.entries, shape);
  table.slow = read_held(group, "held_slow", table.entries, shape);
  require(table.meta_bytes >= 0, group, "the attribute 'meta_bytes' is negative");
  const std::int32_t id = table.entry_not_held();
  require(id < 0, group, fmt::format("a query reads token {}, which 'held' and 'held_slow' do not list", id));
  return table;
}

KeptHead read_head(const InputObject& head, const InputObject& entries, const KeptShape& shape) {
  KeptHead kept;
  kept.positions = read_numbers<std::int32_t>(head, "positions").values;
  require(std::ranges::adjacent_find(kept.positions, std::ranges::greater_equal()) == kept.positions.end(), head,
          "'positions' must increase");
  kept.first_query = integer_of(entries, "first_query", 0);
  require(kept.first_query >= 0 && kept.first_query <= std::ssize(kept.positions), entries,
          fmt::format("'first_query' is {}, and there are {} positions", kept.first_query, kept.positions.size()));
  bool by_query = false;
  for (Index t = 0; entries.has(std::to_string(t)); ++t) {
    kept.tables.push_back(read_table(entries.group(std::to_string(t)), shape));
    by_query |= kept.tables.back().entries.per_query;
  }
  require(!kept.tables.empty(), entries, "it holds no table; the first table is the group '0'");
  require(!by_query || !kept.positions.empty(), head, "tables by query need the dataset 'positions' of the queries");
  return kept;
}

/// The attribute `budget` of each cell; "" where it is missing.
std::vector<std::string> read_budgets(const InputObject& root) {
  std::vector<std::string> budgets;
  if (!root.has("cells")) return budgets;
  const InputObject cells = root.group("cells");
  for (Index cell = 0; cells.has(std::to_string(cell)); ++cell) {
    budgets.push_back(cells.group(std::to_string(cell)).text("budget").value_or(""));
  }
  return budgets;
}

void open_dataset(const InputObject& group, const char* name) {
  if (group.has(name)) group.dataset(name, Extent::part);
}

/// Opens every object of a head that read_head() may open, so that faults of the HDF5 library and of the storage occur
/// here and not later.
void open_all(const InputObject& head) {
  open_dataset(head, "positions");
  for (Index cell = 0; head.has(std::to_string(cell)); ++cell) {
    const InputObject group = head.group(std::to_string(cell));
    if (!group.has("entries")) continue;
    const InputObject entries = group.group("entries");
    integer_of(entries, "first_query", 0);
    for (Index t = 0; entries.has(std::to_string(t)); ++t) {
      const InputObject table = entries.group(std::to_string(t));
      for (const char* attribute : {"per_head", "per_query", "meta_bytes"}) integer_of(table, attribute, 0);
      for (const char* name : id_sets) open_dataset(table, name);
      for (const char* name : number_sets) open_dataset(table, name);
    }
  }
}

}  // namespace

void KeptFile::examine(const InputObject& root) {
  raw::check_schema(root, root.file(), "kept entries");
  trace_sha256_ = root.text("trace_sha256").value_or("");
  budgets_ = read_budgets(root);
  heads_.clear();
  std::map<std::tuple<std::string, std::int64_t, std::int64_t>, std::string> seen;
  const InputObject heads = root.group("heads");
  for (const std::string& name : heads.members()) {
    const InputObject head = heads.group(name);
    const auto prompt = head.text("prompt");
    const auto layer = head.integer("layer"), kv_head = head.integer("kv_head");
    require(prompt && layer && kv_head, head, "a head needs the attributes prompt, layer and kv_head");
    const auto [other, is_new] = seen.try_emplace({*prompt, *layer, *kv_head}, head.name());
    require(is_new, head,
            fmt::format("it has the same prompt '{}', layer {} and kv head {} as {}; remove one of them", *prompt,
                        *layer, *kv_head, other->second));
    heads_.push_back({name, *prompt, *layer, *kv_head, head.text("tokens_sha256").value_or("")});
    open_all(head);
  }
}

KeptFile::KeptFile(const std::string& path)
    : path_(path),
      file_(std::make_shared<const trace::InputFile>(path, "a file of kept entries", "docs/results.md",
                                                     [this](const InputObject& root) { examine(root); })) {
  check_name(path, "The name of the file " + path);
}

std::string KeptFile::tokens_sha256(std::string_view prompt) const {
  const auto place = std::ranges::find(heads_, prompt, &Place::prompt);
  return place == heads_.end() ? "" : place->tokens_sha256;
}

Index KeptFile::cell_at(const std::string& budget) const {
  if (std::ranges::all_of(budgets_, &std::string::empty)) return 0;
  const auto cell = std::ranges::find(budgets_, budget);
  if (cell == budgets_.end()) {
    throw methods::Unavailable(fmt::format("{} holds no entries for the budget {}; it has {}", file_->path(), budget,
                                           fmt::join(budgets_, ", ")));
  }
  if (std::find(cell + 1, budgets_.end(), budget) != budgets_.end()) {
    throw methods::Unavailable(fmt::format("several cells of {} have the budget {}; select one with --set file.cell=C",
                                           file_->path(), budget));
  }
  return cell - budgets_.begin();
}

KeptHead KeptFile::read(std::string_view prompt, std::int64_t layer, Index kv_head, Index cell,
                        const KeptShape& shape) const {
  const auto place = std::ranges::find_if(
      heads_, [&](const Place& p) { return p.prompt == prompt && p.layer == layer && p.kv_head == kv_head; });
  if (place == heads_.end()) {
    throw methods::Unavailable(
        fmt::format("{} holds nothing for prompt '{}', layer {}, kv head {}", file_->path(), prompt, layer, kv_head));
  }
  return file_->read([&](const InputObject& root) {
    const InputObject head = root.group("heads").group(place->group);
    const std::string name = std::to_string(cell);
    if (!head.has(name) || !head.group(name).has("entries")) {
      throw methods::Unavailable(fmt::format("{} holds no entries of cell {} for prompt '{}', layer {}, kv head {}",
                                             file_->path(), cell, prompt, layer, kv_head));
    }
    return read_head(head, head.group(name).group("entries"), shape);
  });
}

}  // namespace kvbench::replay
