// SPDX-License-Identifier: Apache-2.0
#include <kvbench/compare/raw_reader.hpp>

#include <algorithm>
#include <cstdlib>
#include <sstream>

#include <fmt/ranges.h>

#include <kvbench/core/name.hpp>
#include <kvbench/trace/guard/input_file.hpp>
#include <kvbench/trace/guard/input_object.hpp>

namespace kvbench::compare {

using trace::h5::Extent;
using trace::h5::InputObject;

namespace {

constexpr int schema_major = 1;

/// Throws Error, naming the object and the fault, where `holds` is false.
void require(bool holds, const InputObject& where, const std::string& fault) {
  if (!holds) throw Error("{}: {}; see docs/results.md, \"Raw results\".", where.where(), fault);
}

std::int64_t integer_of(const InputObject& object, const char* name, std::int64_t otherwise) {
  return object.integer(name).value_or(otherwise);
}

/// Throws Error where the file has another schema, or a version that this program does not read.
void check_schema(const InputObject& root, const std::string& path) {
  const std::string schema = root.text("kvbench_raw").value_or("");
  if (schema.empty()) {
    throw Error("{} has no attribute kvbench_raw, so it holds no raw results; see docs/results.md.{}", path,
                root.text("kvbench_trace") ? " It is a trace: `kvbench replay --raw` makes raw results from it." : "");
  }
  if (std::atoi(schema.c_str()) != schema_major) {
    throw Error("{}: its schema is kvbench_raw {}, and this kvbench reads {}.x; use a newer kvbench.", path, schema,
                schema_major);
  }
}

std::vector<std::string> split_names(const std::string& text) {
  std::vector<std::string> names;
  std::istringstream stream(text);
  for (std::string name; std::getline(stream, name, ',');) names.push_back(name);
  return names;
}

std::string text_of(const InputObject& object, const char* attribute) {
  const auto text = object.text(attribute);
  require(text.has_value(), object, fmt::format("the attribute '{}' is missing", attribute));
  return *text;
}

replay::Status status_of(const InputObject& group) {
  const std::string text = text_of(group, "status");
  if (const auto status = find_status(text)) return *status;
  throw Error("{}: '{}' is not a status of this version of kvbench.", group.where(), text);
}

Budget budget_of(const InputObject& configuration) {
  const std::string text = text_of(configuration, "budget");
  const std::optional<Budget> budget = Budget::find(text);
  require(budget.has_value(), configuration, fmt::format("'{}' is not a budget of this version of kvbench", text));
  return *budget;
}

bool same_but_seed(const QueryConfiguration& a, const QueryConfiguration& b) {
  return a.method == b.method && a.params == b.params && a.budget == b.budget;
}

std::vector<QueryConfiguration> read_configurations(const InputObject& root) {
  const InputObject configurations = root.group("cells");
  std::vector<QueryConfiguration> all;
  for (std::size_t c = 0; configurations.has(std::to_string(c)); ++c) {
    const InputObject configuration = configurations.group(std::to_string(c));
    all.push_back({text_of(configuration, "method"), text_of(configuration, "params"), budget_of(configuration),
                   static_cast<std::uint32_t>(integer_of(configuration, "seed", 0)),
                   integer_of(configuration, "seeded", 0) != 0});
  }
  for (QueryConfiguration& one :
       all) {  // files without the attribute `seeded`: a configuration with two seeds uses random numbers
    one.seeded |=
        std::ranges::count_if(all, [&](const QueryConfiguration& other) { return same_but_seed(one, other); }) > 1;
  }
  return all;
}

/// Query heads per kv head, from the first results in the file.
Index read_group(const InputObject& heads, std::size_t configurations) {
  for (std::size_t h = 0; heads.has(std::to_string(h)); ++h) {
    const InputObject head = heads.group(std::to_string(h));
    for (std::size_t c = 0; c < configurations && head.has(std::to_string(c)); ++c) {
      const InputObject result = head.group(std::to_string(c));
      if (!result.has("metrics")) continue;
      const auto dims = result.dataset("metrics", Extent::part).dims();
      require(dims.size() == 3 && dims[0] >= 1 && dims[0] <= 65536, result,
              "'metrics' is not [query heads, queries, metrics]");
      return static_cast<Index>(dims[0]);
    }
  }
  return 1;  // no results, so that the value is not used
}

void add_places(const InputObject& head, const QueryPlace& common, RawLayout& layout) {
  QueryPlace place = common;
  place.prompt = text_of(head, "prompt");
  place.protocol = head.text("protocol").value_or("");
  require(head.integer("layer") && head.integer("kv_head"), head, "a head needs the attributes layer and kv_head");
  place.layer = *head.integer("layer");
  place.kv_head = *head.integer("kv_head");
  place.context_tokens = integer_of(head, "context_tokens", 0);
  const Index scored = integer_of(head, "scored_tokens", 0);
  require(scored >= 0, head, fmt::format("'scored_tokens' is {}", scored));
  if (head.has("positions")) place.positions = head.dataset("positions").integers<std::int32_t>();
  layout.positions += place.positions.size();
  require(layout.positions * static_cast<std::size_t>(layout.group) * sizeof(float) <= head.readable_bytes(), head,
          fmt::format("the file cannot hold results of {} query heads at {} queries", layout.group, layout.positions));
  for (Index g = 0; g < layout.group; ++g) {
    place.query_head = place.kv_head * layout.group + g;
    layout.places.push_back(place);
    layout.scored_tokens.push_back(scored);
  }
}

RawLayout read_layout(const InputObject& root, const std::string& path, std::string_view metric) {
  check_schema(root, path);
  const std::vector<std::string> names = split_names(text_of(root, "metrics"));
  const auto found = std::ranges::find(names, metric);
  if (found == names.end()) {
    throw Error("{}: there is no metric '{}' in the file.{} It has: {}.", path, metric, did_you_mean(metric, names),
                fmt::join(names, ", "));
  }
  RawLayout layout{.metrics = names.size(), .metric = static_cast<std::size_t>(found - names.begin())};
  layout.configurations = read_configurations(root);
  QueryPlace common;
  common.trace = root.text("trace").value_or("");
  common.sha256 = root.text("trace_sha256").value_or("").substr(0, 12);
  common.model = root.text("model").value_or("");
  common.model_layers = integer_of(root, "model_layers", 0);
  for (const auto& [kind, kind_name] : replay::change_kinds) {
    const std::string attribute = fmt::format("anchors_{}", kind_name);
    const std::optional<double> factor = root.number(attribute.c_str());
    if (!factor) continue;
    require(std::isfinite(*factor) && *factor > 0, root, fmt::format("'{}' is {}", attribute, *factor));
    layout.anchors[kind] = *factor;
  }
  const InputObject heads = root.group("heads");
  layout.group = read_group(heads, layout.configurations.size());
  for (std::size_t h = 0; heads.has(std::to_string(h)); ++h) {
    add_places(heads.group(std::to_string(h)), common, layout);
  }
  return layout;
}

/// Calls use(entries, table) for each table of the entries of a result that names tokens.
template <class F>
void for_each_table(const InputObject& result, F use) {
  if (!result.has("entries")) return;
  const InputObject entries = result.group("entries");
  for (std::size_t t = 0; entries.has(std::to_string(t)); ++t) {
    const InputObject table = entries.group(std::to_string(t));
    if (table.has("ids")) use(entries, table);
  }
}

/// Opens every object that read() and entries() may open, so that faults of the HDF5 library and of the storage occur
/// here and not later.
void open_all(const InputObject& heads) {
  for (std::size_t h = 0; heads.has(std::to_string(h)); ++h) {
    const InputObject head = heads.group(std::to_string(h));
    for (std::size_t c = 0; head.has(std::to_string(c)); ++c) {
      const InputObject result = head.group(std::to_string(c));
      result.text("status"), result.text("reason"), result.integer("dense"), result.number("total_bytes"),
          result.number("bytes_read");
      if (result.has("metrics")) result.dataset("metrics", Extent::part);
      if (result.has("probe_sums")) result.dataset("probe_sums");
      for_each_table(result, [](const InputObject& entries, const InputObject& table) {
        integer_of(entries, "first_query", 0), integer_of(table, "per_head", 0), integer_of(table, "per_query", 0);
        table.dataset("ids", Extent::part);
      });
    }
  }
}

QueryValues read_values(const InputObject& result, const RawLayout& layout, std::size_t place) {
  QueryValues out{.status = status_of(result),
                  .reason = result.text("reason").value_or(""),
                  .dense = integer_of(result, "dense", 0) != 0,
                  .bytes_held = result.number("total_bytes").value_or(NAN),
                  .bytes_read = result.number("bytes_read").value_or(NAN)};
  if (out.status != replay::Status::ok) return out;
  const InputObject metrics = result.dataset("metrics", Extent::part);
  const std::size_t queries = layout.places[place].positions.size();
  const std::vector<hsize_t> expected = {static_cast<hsize_t>(layout.group), queries, layout.metrics};
  require(metrics.dims() == expected, result,
          fmt::format("'metrics' has the shape [{}], but heads, positions and names of metrics require [{}]",
                      fmt::join(metrics.dims(), ", "), fmt::join(expected, ", ")));
  out.values.resize(queries);
  const hsize_t g = place % expected[0];
  metrics.read_slab(H5T_NATIVE_DOUBLE, {g, 0, layout.metric}, {1, queries, 1}, out.values.data());
  return out;
}

/// `group` query heads answer `queries` queries.
NamedTokens read_tokens(const InputObject& entries, const InputObject& table, Index group, Index queries) {
  const InputObject ids = table.dataset("ids");
  NamedTokens out{.per_head = integer_of(table, "per_head", 0) != 0, .ids = ids.integers<std::int32_t>()};
  if (integer_of(table, "per_query", 0) != 0) {
    const std::int64_t first = integer_of(entries, "first_query", 0);
    require(first >= 0 && first < queries, entries, fmt::format("'first_query' is {} of {} queries", first, queries));
    out.queries = queries - first;
  }
  const std::vector<hsize_t> dims = ids.dims();
  const Index rows = (out.per_head ? group : 1) * out.queries;
  require(dims.size() == 2 && static_cast<Index>(dims[0]) == rows, ids,
          fmt::format("the shape [{}] does not fit {} query heads at {} queries", fmt::join(dims, ", "), group,
                      out.queries));
  out.width = static_cast<Index>(dims[1]);
  return out;
}

}  // namespace

RawReader::RawReader(std::string path, std::string_view metric) : path_(std::move(path)) {
  file_ =
      std::make_shared<const trace::InputFile>(path_, "raw results", "docs/results.md", [&](const InputObject& root) {
        layout_ = read_layout(root, path_, metric);
        open_all(root.group("heads"));
      });
}

std::optional<QueryValues> RawReader::read(std::size_t place, std::size_t configuration) const {
  const std::string head = std::to_string(place / static_cast<std::size_t>(layout_.group));
  const std::string name = std::to_string(configuration);
  return file_->read([&](const InputObject& root) -> std::optional<QueryValues> {
    const InputObject group = root.group("heads").group(head);
    if (!group.has(name)) return std::nullopt;
    return read_values(group.group(name), layout_, place);
  });
}

std::vector<double> RawReader::probe_sums(std::size_t place, std::size_t configuration) const {
  const std::string head = std::to_string(place / static_cast<std::size_t>(layout_.group));
  const std::string name = std::to_string(configuration);
  return file_->read([&](const InputObject& root) {
    const InputObject group = root.group("heads").group(head);
    if (!group.has(name) || !group.group(name).has("probe_sums")) return std::vector<double>();
    const InputObject sums = group.group(name).dataset("probe_sums");
    require(sums.dims().size() == 1 && sums.dims()[0] <= trace::most_probes, sums, "it is not [probes]");
    std::vector<double> values(sums.dims()[0]);
    sums.read_slab(H5T_NATIVE_DOUBLE, {0}, {values.size()}, values.data());
    for (const double value : values) require(std::isfinite(value), sums, "a sum is not finite");
    return values;
  });
}

double RawReader::anchor_factor(std::size_t /*place*/, replay::ChangeKind kind) const {
  const auto found = layout_.anchors.find(kind);
  return found == layout_.anchors.end() ? 1 : found->second;
}

std::vector<NamedTokens> RawReader::entries(std::size_t place, std::size_t configuration) const {
  const std::string head = std::to_string(place / static_cast<std::size_t>(layout_.group));
  const std::string name = std::to_string(configuration);
  return file_->read([&](const InputObject& root) {
    std::vector<NamedTokens> tables;
    const InputObject group = root.group("heads").group(head);
    if (!group.has(name)) return tables;
    for_each_table(group.group(name), [&](const InputObject& entries, const InputObject& table) {
      tables.push_back(read_tokens(entries, table, layout_.group, std::ssize(layout_.places[place].positions)));
    });
    return tables;
  });
}

}  // namespace kvbench::compare
