// SPDX-License-Identifier: Apache-2.0
#include <kvbench/replay/kept_file.hpp>

#include <algorithm>
#include <cmath>

#include <kvbench/core/error.hpp>
#include <kvbench/trace/door.hpp>
#include <kvbench/trace/guard.hpp>
#include <kvbench/trace/hdf5.hpp>

namespace kvbench {
namespace {

using trace::h5::Failure;
using trace::h5::Object;

constexpr int schema_major = 1;

/// A dataset of numbers and its shape.
template <class T>
struct Numbers {
  std::vector<Index> dims;
  std::vector<T> values;
};

/// `length` bounds what a dataset may claim: nothing is allocated for a size that the file cannot hold, compressed or not.
template <class T>
Numbers<T> read_numbers(const Object& group, const char* name, std::uint64_t length) {
  constexpr double compression = 1100;  // deflate reaches 1032
  if (!group.has(name)) return {};
  const Object dataset = group.dataset(name);
  Numbers<T> out;
  double count = 1;
  for (const hsize_t size : dataset.dims()) {
    out.dims.push_back(static_cast<Index>(size));
    count *= static_cast<double>(size);
  }
  if (count > compression * static_cast<double>(length)) {
    throw Error("{} claims {} numbers, more than the file can hold; it is damaged, write it again.", dataset.where(), count);
  }
  out.values.resize(static_cast<std::size_t>(count));
  if (!out.values.empty()) {
    dataset.read(std::is_same_v<T, float> ? H5T_NATIVE_FLOAT : H5T_NATIVE_INT32, out.values.data());
  }
  return out;
}

std::int64_t integer_of(const Object& object, const char* name, std::int64_t otherwise) {
  return object.integer(name).value_or(otherwise);
}

void require(bool holds, const Object& where, const std::string& fault) {
  if (!holds) throw Error("{}: {}; see docs/results.md, \"Raw results\".", where.where(), fault);
}

struct Limits {
  Index d, dv, group;
  std::uint64_t length;
};

/// Numbers beside the ids: `width` of them a slot, or none.
std::vector<float> read_beside(const Object& group, const char* name, Index slots, Index width, const Limits& limits) {
  Numbers<float> numbers = read_numbers<float>(group, name, limits.length);
  if (numbers.values.empty()) return {};
  require(static_cast<Index>(numbers.values.size()) == slots * width, group,
          fmt::format("'{}' holds {} numbers, and the ids ask for {}", name, numbers.values.size(), slots * width));
  require(std::ranges::all_of(numbers.values, [](float x) { return std::isfinite(x); }), group,
          fmt::format("'{}' holds a number that is not finite", name));
  return std::move(numbers.values);
}

RawTable read_table(const Object& group, const Limits& limits) {
  RawTable table;
  table.per_head = integer_of(group, "per_head", 0) != 0;
  table.per_query = integer_of(group, "per_query", 0) != 0;
  Numbers<std::int32_t> ids = read_numbers<std::int32_t>(group, "ids", limits.length);
  require(ids.dims.size() == 1 || ids.dims.size() == 2, group, "a table needs a dataset 'ids' of [rows, width], or [width]");
  table.rows = ids.dims.size() == 2 ? ids.dims[0] : 1;
  table.width = ids.dims.back();
  table.ids = std::move(ids.values);
  const Index heads = table.per_head ? limits.group : 1;
  require(table.per_query ? table.rows % heads == 0 : table.rows == heads, group,
          fmt::format("'ids' has {} rows, which do not fit {} query heads", table.rows, limits.group));
  require(std::ranges::all_of(table.ids, [](std::int32_t id) { return id >= -1; }), group,
          "an id is below -1, which marks unused slots");
  const Index slots = table.rows * table.width;
  table.weight_num = read_beside(group, "weight_num", slots, 1, limits);
  table.weight_den = read_beside(group, "weight_den", slots, 1, limits);
  table.own_keys = read_beside(group, "own_keys", slots, limits.d, limits);
  table.own_values = read_beside(group, "own_values", slots, limits.dv, limits);
  return table;
}

KeptHead read_head(const Object& head, const Object& entries, const Limits& limits) {
  KeptHead kept;
  kept.positions = read_numbers<std::int32_t>(head, "positions", limits.length).values;
  kept.first_query = integer_of(entries, "first_query", 0);
  bool by_query = false;
  for (Index t = 0; entries.has(std::to_string(t)); ++t) {
    kept.tables.push_back(read_table(entries.group(std::to_string(t)), limits));
    by_query |= kept.tables.back().per_query;
  }
  require(!kept.tables.empty(), entries, "it holds no table; the first one is the group '0'");
  require(!by_query || !kept.positions.empty(), head, "tables by query need the dataset 'positions' of the queries");
  return kept;
}

/// Reads all that read_head() may ever read below `heads`, for what it does to the library.
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
        integer_of(table, "per_head", 0), integer_of(table, "per_query", 0);
        read_numbers<std::int32_t>(table, "ids", length);
        for (const char* beside : {"weight_num", "weight_den", "own_keys", "own_values"})
          read_numbers<float>(table, beside, length);
      }
    }
  }
}

void check_schema(const Object& root, const std::string& path) {
  const std::string schema = root.text("kvbench_raw").value_or("");
  if (schema.empty()) throw Error("{}: has no attribute kvbench_raw, so it holds no kept entries; see docs/results.md.", path);
  if (std::atoi(schema.c_str()) != schema_major) {
    throw Error("{}: its schema is kvbench_raw {}, and this kvbench reads {}.x; use a newer kvbench.", path, schema,
                schema_major);
  }
}

/// Runs `work` in an HDF5 session; what the library refuses becomes an Error.
template <class F>
auto in_session(F work) {
  const trace::h5::Session session;
  try {
    return work();
  } catch (const Failure& failure) {
    throw Error("{}. The file is damaged, or no file of kept entries; see docs/results.md.", failure.what());
  }
}

}  // namespace

KeptFile::KeptFile(std::string path) : path_(std::move(path)), length_(trace::knock(path_)) {
  in_session([&] {
    const auto describe = [&] {
      const Object root = Object::open_file(path_);
      check_schema(root, path_);
      heads_.clear();
      const Object heads = root.group("heads");
      for (const std::string& name : heads.members()) {
        const Object head = heads.group(name);
        require(head.text("prompt") && head.integer("layer") && head.integer("kv_head"), head,
                "a head needs the attributes prompt, layer and kv_head");
        heads_.push_back({name, *head.text("prompt"), *head.integer("layer"), *head.integer("kv_head")});
      }
    };
    trace::look_first(path_, [&] {
      describe();
      touch_all(Object::open_file(path_).group("heads"), length_);
    });
    describe();
    return 0;
  });
}

KeptHead KeptFile::read(std::string_view prompt, std::int64_t layer, Index kv_head, Index cell, Index d, Index dv,
                        Index group) const {
  const auto place = std::ranges::find_if(
      heads_, [&](const Place& p) { return p.prompt == prompt && p.layer == layer && p.kv_head == kv_head; });
  if (place == heads_.end()) {
    throw Unavailable(fmt::format("{} holds nothing for prompt '{}', layer {}, kv head {}", path_, prompt, layer, kv_head));
  }
  return in_session([&] {
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
