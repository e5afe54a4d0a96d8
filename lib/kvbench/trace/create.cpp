// SPDX-License-Identifier: Apache-2.0
#include <kvbench/trace/create.hpp>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <ctime>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <kvbench/trace/float_type.hpp>
#include <kvbench/trace/hdf5/output.hpp>
#include <kvbench/trace/layout.hpp>
#include <kvbench/trace/slab.hpp>

namespace kvbench::trace {
namespace {

/// Current time, or SOURCE_DATE_EPOCH for reproducible files (reproducible-builds.org), in ISO 8601, UTC.
std::string now() {
  std::time_t time = std::time(nullptr);
  if (const char* epoch = std::getenv("SOURCE_DATE_EPOCH"))
    time = static_cast<std::time_t>(std::strtoll(epoch, nullptr, 10));
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(time));
}

void set_if_known(const h5::Object& at, const char* name, const std::string& value) {
  if (!value.empty()) at.set(name, value);
}

void describe_model(const h5::Object& root, const TraceInfo& info) {
  root.set("kvbench_trace", fmt::format("{}.{}", schema_major, schema_minor));
  root.set("model", info.model);
  set_if_known(root, "arch", info.arch);
  set_if_known(root, "quantisation", info.quantisation);
  set_if_known(root, "source_tool", info.source_tool);
  set_if_known(root, "source_version", info.source_version);
  root.set("created", info.created.empty() ? now() : info.created);
  root.set("num_layers", info.num_layers);
  root.set("num_query_heads", info.num_query_heads);
  root.set("num_kv_heads", info.num_kv_heads);
  root.set("head_dim", info.head_dim);
  root.set("value_dim", info.value_dim);
  root.set("rope_type", info.rope_type);
  root.set("rope_layout", info.rope_layout);
  root.set("dtype", std::string(name_of(info.dtype)));
}

template <class T>
void write_integers(const h5::Object& group, const char* name, const std::vector<T>& values) {
  const hid_t stored = sizeof(T) == 4 ? H5T_STD_I32LE : H5T_STD_I64LE;
  h5::Object dataset = group.create_dataset(name, stored, {values.size()}, {});
  dataset.write(stored, values.data());
  dataset.close();
}

// Fixed length: the size of the contiguous bytes can be checked before they are read.
void write_text(const h5::Object& group, const char* name, const std::string& text) {
  const h5::Handle type = h5::fixed_string(text.size());
  h5::Object dataset = group.create_dataset(name, type.get(), {}, {});
  dataset.write(type.get(), text.c_str());
  dataset.close();
}

/// Whole heads, as many as 32 KiB hold: in small chunks deflate has one Huffman code for the high and the low bytes of
/// halves, which costs 6 % of queries. Heads of more than 4 GiB are split, because HDF5 limits chunks to that.
std::vector<hsize_t> chunk_of(std::vector<hsize_t> dims, std::size_t element) {
  constexpr hsize_t limit = (hsize_t{1} << 32) - 1, small = hsize_t{1} << 15;
  const std::size_t at = dims.size() < 2 ? 0 : 1;  // the dimension of the rows
  hsize_t row = element;
  for (std::size_t i = at + 1; i < dims.size(); ++i) row *= dims[i];
  dims[at] = std::min(dims[at], std::max<hsize_t>(1, limit / row));
  if (at == 1) dims[0] = std::clamp<hsize_t>(small / (row * std::max<hsize_t>(1, dims[1])), 1, dims[0]);
  return dims;
}

void create_layer(const h5::Object& group, const TraceInfo& info, const PromptInfo& prompt, const LayerInfo& layer,
                  bool compress) {
  group.set("window", layer.window);
  group.set("rope_theta", layer.rope_theta);
  group.set("scale", layer.scale);
  group.set("softcap", layer.softcap);
  if (layer.values_in_keys) group.set("values_in_keys", std::int64_t{1});
  write_integers(group, "query_positions", layer.query_positions);
  for (const Array array : all_arrays) {
    if (!holds(layer, array)) continue;
    const std::vector<hsize_t> dims = dims_of(info, prompt, layer, array);
    const Dtype dtype = dtype_of(info, array);
    const auto chunk = compress ? chunk_of(dims, size_of(dtype)) : std::vector<hsize_t>{};
    const h5::Object dataset = group.create_dataset(name_of(array), h5::element_type(dtype).get(), dims, chunk);
    if (array == Array::column_sums) dataset.set("column_sums_end", *layer.column_sums_end);
    if (array != Array::output_sketch) continue;
    dataset.set("seed", layer.output_sketch->seed);
    dataset.set("misfit", layer.output_sketch->misfit);
  }
}

void describe_probes(const h5::Object& group, const Probes& probes) {
  group.set("num_probes", probes.count);
  group.set("scored_tokens", probes.tokens);
  group.set("probe_seed", probes.seed);
  set_if_known(group, "evaluated_in", probes.evaluated_in);
}

void write_anchors(const h5::Object& group, const Anchors& anchors) {
  std::string lines;
  std::vector<std::int64_t> layers;
  std::vector<double> kl, predicted;
  for (const Anchor& anchor : anchors.list) {
    lines += fmt::format("{}{} {}", lines.empty() ? "" : "\n", anchor.method, anchor.budget);
    layers.push_back(anchor.layer.value_or(-1));
    kl.push_back(anchor.kl);
    predicted.push_back(std::isnan(anchor.predicted) ? -1 : anchor.predicted);
  }
  const std::vector<Index> dims{std::ssize(anchors.list)};
  group.set("version", anchors.version);
  write_text(group, "configurations", lines);
  h5::write(group, "layers", layers, dims);
  h5::write(group, "kl", kl, dims);
  h5::write(group, "predicted", predicted, dims);
}

void create_prompt(const h5::Object& group, const TraceInfo& info, const PromptInfo& prompt, bool compress) {
  group.set("name", prompt.name);
  group.set("num_tokens", prompt.num_tokens);
  group.set("prompt_tokens", prompt.prompt_tokens);
  if (prompt.answer_start) group.set("answer_start", *prompt.answer_start);
  if (prompt.answer_end) group.set("answer_end", *prompt.answer_end);
  if (prompt.probes) describe_probes(group, *prompt.probes);
  write_integers(group, "tokens", prompt.tokens);
  if (prompt.text) write_text(group, "text", *prompt.text);
  if (prompt.anchors) write_anchors(group.create_group("anchors"), *prompt.anchors);
  std::string spans;
  for (const auto& [name, begin, end] : prompt.spans)
    spans += fmt::format("{}{} {} {}", spans.empty() ? "" : "\n", begin, end, name);
  if (!spans.empty()) write_text(group, "spans", spans);
  const h5::Object layers = group.create_group("layers");
  for (const LayerInfo& layer : prompt.layers) {
    create_layer(layers.create_group(std::to_string(layer.layer)), info, prompt, layer, compress);
  }
}

}  // namespace

h5::Object create(const std::string& path, const std::string& final_name, const TraceInfo& info, bool compress,
                  H5F_libver_t format) {
  h5::Object root = h5::Object::create_file(path, final_name, format, !compress);
  describe_model(root, info);
  if (!info.cache_layers.empty()) write_integers(root, "cache_layers", info.cache_layers);
  const h5::Object prompts = root.create_group("prompts");
  for (const PromptInfo& prompt : info.prompts) create_prompt(prompts.create_group(prompt.id), info, prompt, compress);
  return root;
}

}  // namespace kvbench::trace
