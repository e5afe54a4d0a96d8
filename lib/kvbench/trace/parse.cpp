// SPDX-License-Identifier: Apache-2.0
#include <kvbench/trace/parse.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <sstream>

#include <fmt/ranges.h>

#include <kvbench/core/error.hpp>
#include <kvbench/core/utf8.hpp>
#include <kvbench/trace/float_type.hpp>
#include <kvbench/trace/layout.hpp>
#include <kvbench/trace/slab.hpp>

namespace kvbench::trace {
namespace {

std::string missing(const h5::InputObject& at, const char* attribute) {
  return fmt::format("{}: attribute '{}' is missing; see docs/traces.md.", at.where(), attribute);
}
std::int64_t integer(const h5::InputObject& at, const char* name) {
  const auto value = at.integer(name);
  if (!value) throw Error("{}", missing(at, name));
  return *value;
}
double number(const h5::InputObject& at, const char* name) {
  const auto value = at.number(name);
  if (!value) throw Error("{}", missing(at, name));
  return *value;
}
std::string text(const h5::InputObject& at, const char* name) {
  const auto value = at.text(name);
  if (!value) throw Error("{}", missing(at, name));
  return *value;
}

/// An integer, 0 or 1; absent: 0.
bool flag(const h5::InputObject& at, const char* name) {
  const std::int64_t value = at.integer(name).value_or(0);
  if (value != 0 && value != 1) throw Error("{}: attribute '{}' is {}; it must be 0 or 1.", at.where(), name, value);
  return value == 1;
}

/// A plain decimal number without sign or leading zeros.
std::optional<std::int64_t> decimal(const std::string& name) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), value);
  if (error != std::errc() || end != name.data() + name.size() || std::to_string(value) != name || value < 0)
    return std::nullopt;
  return value;
}

void check_version(const h5::InputObject& file, const std::string& path) {
  const auto version = file.text("kvbench_trace");
  if (!version) {
    throw Error("{}: is an HDF5 file but not a trace: the root attribute 'kvbench_trace' is missing.{}", path,
                file.text("kvbench_raw")    ? " It holds raw results, whose methods `kvbench compare` compares."
                : file.text("kvbench_eval") ? " It holds the scores of an evaluation (docs/eval.md)."
                                            : "");
  }
  const std::size_t dot = version->find('.');
  const auto major = decimal(version->substr(0, dot));
  const auto minor = dot == std::string::npos ? std::nullopt : decimal(version->substr(dot + 1));
  if (!major || !minor)
    throw Error("{}: attribute 'kvbench_trace' is '{}'; expected a version such as '1.0'.", path, *version);
  if (*major > schema_major) {
    throw Error("{}: trace schema {} is newer than this kvbench, which reads {}.x; install a newer kvbench.", path,
                *version, schema_major);
  }
  if (*major < schema_major)
    throw Error("{}: trace schema {} was never released; write the trace again.", path, *version);
}

Dtype parse_dtype(const h5::InputObject& file) {
  const std::string name = text(file, "dtype");
  for (const Dtype dtype : {Dtype::f32, Dtype::f16, Dtype::bf16}) {
    if (name == name_of(dtype)) return dtype;
  }
  throw Error("{}: attribute 'dtype' is '{}'; it must be f32, f16 or bf16.", file.where(), name);
}

template <class T>
std::vector<T> integers(const h5::InputObject& dataset) {
  const std::vector<hsize_t> dims = dataset.dims();
  if (dims.size() != 1) throw Error("{}: has {} dimensions; it must have one.", dataset.where(), dims.size());
  return dataset.integers<T>();
}

std::string long_text(const h5::InputObject& dataset) {
  if (H5Tget_class(dataset.type().get()) != H5T_STRING) throw Error("{}: must be a string.", dataset.where());
  return dataset.read_string();
}

/// Checks the arrays of a layer. Returns the size in bytes of the largest compressed chunk, 0 where there is none.
std::uint64_t check_arrays(const h5::InputObject& group, const TraceInfo& info, const PromptInfo& prompt,
                           const LayerInfo& layer) {
  std::uint64_t largest = 0;
  for (const Array array : all_arrays) {
    if (!holds(layer, array)) continue;
    const h5::InputObject dataset = group.dataset(name_of(array), h5::Extent::part);
    const std::vector<hsize_t> dims = dataset.dims(), expected = dims_of(info, prompt, layer, array);
    if (dims != expected) {
      throw Error("{}: has the shape [{}], but the attributes require [{}].", dataset.where(), fmt::join(dims, ", "),
                  fmt::join(expected, ", "));
    }
    const Dtype dtype = dtype_of(info, array);
    if (H5Tequal(dataset.type().get(), h5::element_type(dtype).get()) <= 0) {
      throw Error("{}: its elements are not {} (little-endian).", dataset.where(), name_of(dtype));
    }
    std::uint64_t chunk = size_of(dtype);
    const h5::Storage stored = dataset.storage();
    for (const hsize_t dim : stored.chunk_dims) chunk *= dim;
    if (!stored.chunk_dims.empty()) largest = std::max(largest, chunk);
  }
  return largest;
}

OutputSketch parse_sketch(const h5::InputObject& dataset) {
  const std::vector<hsize_t> dims = dataset.dims();
  if (dims.size() != 3 || dims[2] < 1 || dims[2] > static_cast<hsize_t>(most_dimensions)) {
    throw Error("{}: has the shape [{}]; it must have three dimensions, and from 1 to {} columns in the last.",
                dataset.where(), fmt::join(dims, ", "), most_dimensions);
  }
  return {static_cast<std::int64_t>(dims[2]), integer(dataset, "seed"), dataset.number("misfit").value_or(0)};
}

std::optional<Probes> parse_probes(const h5::InputObject& group) {
  const auto count = group.integer("num_probes");
  if (!count) return std::nullopt;
  return Probes{*count, integer(group, "scored_tokens"), integer(group, "probe_seed"),
                group.text("evaluated_in").value_or("")};
}

/// A dataset with a value for each of `count` anchors.
h5::InputObject per_anchor(const h5::InputObject& group, const char* name, std::size_t count) {
  h5::InputObject dataset = group.dataset(name);
  const std::vector<hsize_t> dims = dataset.dims();
  if (dims.size() == 1 && dims[0] == count) return dataset;
  throw Error("{}: has the shape [{}], but dataset 'configurations' has {} lines.", dataset.where(),
              fmt::join(dims, ", "), count);
}

/// Splits "METHOD BUDGET".
Anchor configuration_of(const std::string& line, const std::string& where) {
  const std::size_t space = line.rfind(' ');
  if (space == line.npos) throw Error("{}: is '{}'; it must be METHOD BUDGET.", where, printable(line));
  return {.method = line.substr(0, space), .budget = line.substr(space + 1), .layer = {}};
}

Anchors parse_anchors(const h5::InputObject& group) {
  Anchors anchors{text(group, "version"), {}};
  const h5::InputObject dataset = group.dataset("configurations");
  const std::string lines = long_text(dataset);
  const auto count = 1 + std::ranges::count(lines, '\n');
  if (count > most_anchors)
    throw Error("{}: has {} lines; a prompt has at most {} anchors.", dataset.where(), count, most_anchors);
  const auto n = static_cast<std::size_t>(count);
  const auto layers = per_anchor(group, "layers", n).integers<std::int64_t>();
  const std::vector<double> kl = per_anchor(group, "kl", n).numbers();
  const std::vector<double> predicted = per_anchor(group, "predicted", n).numbers();
  for (std::size_t i = 0, begin = 0; i < n; ++i) {
    const std::size_t end = std::min(lines.find('\n', begin), lines.size());
    const std::string where = fmt::format("{}: line {}", dataset.where(), i + 1);
    Anchor& anchor = anchors.list.emplace_back(configuration_of(lines.substr(begin, end - begin), where));
    if (layers[i] != -1) anchor.layer = layers[i];
    anchor.kl = kl[i];
    anchor.predicted = predicted[i] == -1 ? std::numeric_limits<double>::quiet_NaN() : predicted[i];
    if (std::isnan(predicted[i])) throw Error("{}/predicted: entry {} is nan; -1 means none.", group.where(), i);
    begin = end + 1;
  }
  return anchors;
}

/// Lines "BEGIN END NAME".
std::vector<Span> parse_spans(const h5::InputObject& dataset) {
  std::vector<Span> spans;
  std::istringstream lines(long_text(dataset) + "\n");
  for (std::string line; std::getline(lines, line);) {
    const std::size_t begin = std::min(line.find(' '), line.size()),
                      end = std::min(line.find(' ', begin + 1), line.size());
    const auto from = decimal(line.substr(0, begin)),
               to = decimal(line.substr(std::min(begin + 1, end), end - begin - 1));
    if (!from || !to) throw Error("{}: line {} is not BEGIN END NAME.", dataset.where(), spans.size() + 1);
    spans.push_back({line.substr(std::min(end + 1, line.size())), *from, *to});
  }
  return spans;
}

LayerInfo parse_layer(const h5::InputObject& group, std::int64_t index) {
  LayerInfo layer;
  layer.layer = static_cast<int>(index);
  layer.window = integer(group, "window");
  layer.rope_theta = number(group, "rope_theta");
  layer.scale = number(group, "scale");
  layer.softcap = number(group, "softcap");
  layer.values_in_keys = flag(group, "values_in_keys");
  layer.query_positions = integers<std::int64_t>(group.dataset("query_positions"));
  if (group.has("column_sums")) layer.column_sums_end = integer(group.dataset("column_sums"), "column_sums_end");
  layer.keys_pre_rope = group.has("keys_pre_rope");
  layer.queries_pre_rope = group.has("queries_pre_rope");
  layer.speculated_queries = group.has("speculated_queries");
  layer.attention_output = group.has("attention_output");
  layer.residual_norm = group.has("residual_norm");
  if (group.has("output_sketch")) layer.output_sketch = parse_sketch(group.dataset("output_sketch", h5::Extent::part));
  layer.probes = group.has("probes");
  return layer;
}

PromptInfo parse_prompt(const h5::InputObject& group, const std::string& id, const TraceInfo& info) {
  PromptInfo prompt;
  prompt.id = id;
  prompt.name = text(group, "name");
  prompt.num_tokens = integer(group, "num_tokens");
  prompt.prompt_tokens = integer(group, "prompt_tokens");
  prompt.answer_start = group.integer("answer_start");
  prompt.answer_end = group.integer("answer_end");
  prompt.tokens = integers<std::int32_t>(group.dataset("tokens"));
  if (group.has("text")) prompt.text = long_text(group.dataset("text"));
  prompt.probes = parse_probes(group);
  if (group.has("anchors")) prompt.anchors = parse_anchors(group.group("anchors"));
  if (group.has("spans")) prompt.spans = parse_spans(group.dataset("spans"));
  const h5::InputObject layers = group.group("layers");
  std::vector<std::int64_t> indices;
  for (const std::string& name : layers.members()) {
    const auto index = decimal(name);
    if (!index || *index >= info.num_layers) {
      throw Error("{}: '{}' is not a layer number below num_layers = {}.", layers.where(), name, info.num_layers);
    }
    indices.push_back(*index);
  }
  std::sort(indices.begin(), indices.end());
  for (const std::int64_t index : indices)
    prompt.layers.push_back(parse_layer(layers.group(std::to_string(index)), index));
  return prompt;
}

/// Numeric names by value, then the others in alphabetic order.
bool comes_before(const std::string& a, const std::string& b) {
  const auto x = decimal(a), y = decimal(b);
  if (x && y) return *x < *y;
  return x.has_value() != y.has_value() ? x.has_value() : a < b;
}

}  // namespace

TraceInfo parse(const h5::InputObject& root, const std::string& path) {
  check_version(root, path);
  TraceInfo info;
  info.model = text(root, "model");
  info.arch = root.text("arch").value_or("");
  info.quantisation = root.text("quantisation").value_or("");
  info.source_tool = root.text("source_tool").value_or("");
  info.source_version = root.text("source_version").value_or("");
  info.created = root.text("created").value_or("");
  info.num_layers = integer(root, "num_layers");
  info.num_query_heads = integer(root, "num_query_heads");
  info.num_kv_heads = integer(root, "num_kv_heads");
  info.head_dim = integer(root, "head_dim");
  info.value_dim = integer(root, "value_dim");
  info.rope_type = text(root, "rope_type");
  info.rope_layout = text(root, "rope_layout");
  info.dtype = parse_dtype(root);
  if (root.has("cache_layers")) {
    info.cache_layers = integers<std::int32_t>(root.dataset("cache_layers"));
    if (info.cache_layers.empty()) throw Error("{}: dataset 'cache_layers' is empty; leave it out.", path);
  }
  const h5::InputObject prompts = root.group("prompts");
  std::vector<std::string> ids = prompts.members();
  std::sort(ids.begin(), ids.end(), &comes_before);
  for (const std::string& id : ids) info.prompts.push_back(parse_prompt(prompts.group(id), id, info));
  check(info, path);
  for (const PromptInfo& prompt : info.prompts) {
    const h5::InputObject layers = prompts.group(prompt.id).group("layers");
    for (const LayerInfo& layer : prompt.layers) {
      const std::uint64_t chunk = check_arrays(layers.group(std::to_string(layer.layer)), info, prompt, layer);
      info.largest_chunk = std::max(info.largest_chunk, chunk);
    }
  }
  return info;
}

}  // namespace kvbench::trace
