// SPDX-License-Identifier: Apache-2.0
#include <kvbench/trace/parse.hpp>

#include <algorithm>
#include <charconv>
#include <limits>

#include <kvbench/core/error.hpp>
#include <kvbench/trace/global_heap.hpp>
#include <kvbench/trace/layout.hpp>

namespace kvbench::trace {
namespace {

std::string missing(const h5::Object& at, const char* attribute) {
  return fmt::format("{}: attribute '{}' is missing; see docs/traces.md.", at.where(), attribute);
}
std::int64_t integer(const h5::Object& at, const char* name) {
  const auto value = at.integer(name);
  if (!value) throw Error("{}", missing(at, name));
  return *value;
}
double number(const h5::Object& at, const char* name) {
  const auto value = at.number(name);
  if (!value) throw Error("{}", missing(at, name));
  return *value;
}
std::string text(const h5::Object& at, const char* name) {
  const auto value = at.text(name);
  if (!value) throw Error("{}", missing(at, name));
  return *value;
}

/// A plain decimal number without sign or leading zeros.
std::optional<std::int64_t> decimal(const std::string& name) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), value);
  if (error != std::errc() || end != name.data() + name.size() || std::to_string(value) != name || value < 0)
    return std::nullopt;
  return value;
}

void check_version(const h5::Object& file, const std::string& path) {
  const auto version = file.text("kvbench_trace");
  if (!version) throw Error("{}: is an HDF5 file but not a trace: the root attribute 'kvbench_trace' is missing.", path);
  const std::size_t dot = version->find('.');
  const auto major = decimal(version->substr(0, dot));
  const auto minor = dot == std::string::npos ? std::nullopt : decimal(version->substr(dot + 1));
  if (!major || !minor) throw Error("{}: attribute 'kvbench_trace' is '{}'; expected a version such as '1.0'.", path, *version);
  if (*major > schema_major) {
    throw Error("{}: trace schema {} is newer than this kvbench, which reads {}.x; install a newer kvbench.", path, *version,
                schema_major);
  }
  if (*major < schema_major) throw Error("{}: trace schema {} was never released; write the trace again.", path, *version);
}

Dtype parse_dtype(const h5::Object& file) {
  const std::string name = text(file, "dtype");
  for (const Dtype dtype : {Dtype::f32, Dtype::f16, Dtype::bf16}) {
    if (name == name_of(dtype)) return dtype;
  }
  throw Error("{}: attribute 'dtype' is '{}'; it must be f32, f16 or bf16.", file.where(), name);
}

class Parser {
 public:
  Parser(const std::string& path, std::uint64_t length) : path_(path), length_(length) {}

  TraceInfo file(const h5::Object& root);

 private:
  PromptInfo prompt(const h5::Object& group, const std::string& id, const TraceInfo& info);
  LayerInfo layer(const h5::Object& group, std::int64_t index);
  void arrays(const h5::Object& group, const TraceInfo& info, const PromptInfo& prompt, const LayerInfo& layer);
  template <class T>
  std::vector<T> integers(const h5::Object& dataset);
  std::string long_text(const h5::Object& dataset);
  void check_storage(const h5::Object& dataset, const std::vector<hsize_t>& dims, std::size_t element);

  const std::string& path_;
  std::uint64_t length_;
  std::uint64_t claimed_ = 0;  ///< sum of the stored bytes of the datasets so far; detects datasets that share bytes
};

// Deflate compresses by at most a factor of 1032, so a small file cannot cause a large allocation.
constexpr std::uint64_t max_inflation = 1032;

void check_filters(const h5::Object& dataset, const h5::Storage& storage) {
  for (const H5Z_filter_t filter : storage.filters) {
    if (filter != H5Z_FILTER_SHUFFLE && filter != H5Z_FILTER_DEFLATE) {
      throw Error("{}: stored with HDF5 filter {}; only shuffle and deflate are read. Copy it with h5repack -f NONE.",
                  dataset.where(), filter);
    }
  }
}

void check_chunks(const h5::Object& dataset, const h5::Storage& storage, const std::vector<hsize_t>& dims) {
  hsize_t expected = 1;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    const hsize_t chunk = storage.chunk_dims.at(i);
    if (chunk == 0 || chunk > std::max<hsize_t>(dims[i], 1 << 20))
      throw Error("{}: the sizes of its chunks are invalid; it is damaged.", dataset.where());
    expected *= (dims[i] + chunk - 1) / chunk;
  }
  if (storage.chunks != expected) {
    throw Error("{}: {} of {} chunks were written; the trace is incomplete.", dataset.where(), storage.chunks, expected);
  }
}

void Parser::check_storage(const h5::Object& dataset, const std::vector<hsize_t>& dims, std::size_t element) {
  std::uint64_t bytes = element;
  for (const hsize_t dim : dims) {
    if (__builtin_mul_overflow(bytes, dim, &bytes)) bytes = std::numeric_limits<std::uint64_t>::max();
  }
  if (bytes / max_inflation > length_) {
    throw Error("{}: claims {} bytes, more than a file of {} bytes can hold; it is damaged.", dataset.where(), bytes, length_);
  }
  const h5::Storage storage = dataset.storage();
  if (storage.external || storage.layout == H5D_VIRTUAL)
    throw Error("{}: is stored in another file; copy it into this file with h5repack.", dataset.where());
  if (storage.layout != H5D_CONTIGUOUS && storage.layout != H5D_CHUNKED) {
    throw Error("{}: has an unsupported storage layout; copy it with h5repack -l CONTI.", dataset.where());
  }
  check_filters(dataset, storage);
  if (storage.layout == H5D_CHUNKED) check_chunks(dataset, storage, dims);
  if (storage.layout == H5D_CONTIGUOUS && bytes > 0) {
    if (storage.offset == HADDR_UNDEF) throw Error("{}: was never written; the trace is incomplete.", dataset.where());
    if (storage.bytes != bytes || storage.offset > length_ || bytes > length_ - storage.offset) {
      throw Error("{}: its {} bytes extend beyond the end of the file; it is truncated or damaged.", dataset.where(), bytes);
    }
  }
  if (storage.bytes > length_ - claimed_) {
    throw Error("{}: the datasets up to this one claim more bytes than the file has; it is damaged.", dataset.where());
  }
  claimed_ += storage.bytes;
}

template <class T>
std::vector<T> Parser::integers(const h5::Object& dataset) {
  const std::vector<hsize_t> dims = dataset.dims();
  if (dims.size() != 1) throw Error("{}: has {} dimensions; it must have one.", dataset.where(), dims.size());
  const h5::Handle type = dataset.type();
  if (H5Tget_class(type.get()) != H5T_INTEGER || H5Tget_size(type.get()) > 8)
    throw Error("{}: must have integer elements.", dataset.where());
  check_storage(dataset, dims, H5Tget_size(type.get()));
  std::vector<std::int64_t> wide(dims[0]);
  dataset.read(H5T_NATIVE_INT64, wide.data());
  const auto misfit = std::find_if(wide.begin(), wide.end(), [](std::int64_t value) { return !std::in_range<T>(value); });
  if (misfit != wide.end())
    throw Error("{}: entry {} is {}, which does not fit.", dataset.where(), misfit - wide.begin(), *misfit);
  return {wide.begin(), wide.end()};
}

std::string Parser::long_text(const h5::Object& dataset) {
  const h5::Handle type = dataset.type();
  if (H5Tget_class(type.get()) != H5T_STRING) throw Error("{}: must be a string.", dataset.where());
  // In memory a variable-length string is a pointer; the file stores a reference into its heap.
  const bool variable = H5Tis_variable_str(type.get()) > 0;
  check_storage(dataset, {}, variable ? std::tuple_size_v<h5::HeapReference> : H5Tget_size(type.get()));
  return dataset.read_string();
}

void Parser::arrays(const h5::Object& group, const TraceInfo& info, const PromptInfo& prompt, const LayerInfo& layer) {
  for (const Array array : all_arrays) {
    if (!holds(layer, array)) continue;
    const h5::Object dataset = group.dataset(name_of(array));
    const Shape shape = shape_of(info, prompt, layer, array);
    std::vector<hsize_t> expected{static_cast<hsize_t>(shape.heads), static_cast<hsize_t>(shape.rows)};
    if (rank_of(array) == 3) expected.push_back(static_cast<hsize_t>(shape.dim));
    const std::vector<hsize_t> dims = dataset.dims();
    if (dims != expected) {
      throw Error("{}: has the shape [{}], but the attributes require [{}].", dataset.where(), fmt::join(dims, ", "),
                  fmt::join(expected, ", "));
    }
    const Dtype dtype = dtype_of(info, array);
    if (H5Tequal(dataset.type().get(), h5::float_type(dtype).get()) <= 0) {
      throw Error("{}: its elements are not {} (little-endian).", dataset.where(), name_of(dtype));
    }
    check_storage(dataset, dims, size_of(dtype));
  }
}

LayerInfo Parser::layer(const h5::Object& group, std::int64_t index) {
  LayerInfo layer;
  layer.layer = static_cast<int>(index);
  layer.window = integer(group, "window");
  layer.rope_theta = number(group, "rope_theta");
  layer.scale = number(group, "scale");
  layer.softcap = number(group, "softcap");
  layer.query_positions = integers<std::int64_t>(group.dataset("query_positions"));
  if (group.has("column_sums")) layer.column_sums_end = integer(group.dataset("column_sums"), "column_sums_end");
  layer.keys_pre_rope = group.has("keys_pre_rope");
  layer.queries_pre_rope = group.has("queries_pre_rope");
  layer.speculated_queries = group.has("speculated_queries");
  layer.attention_output = group.has("attention_output");
  return layer;
}

PromptInfo Parser::prompt(const h5::Object& group, const std::string& id, const TraceInfo& info) {
  PromptInfo prompt;
  prompt.id = id;
  prompt.name = text(group, "name");
  prompt.num_tokens = integer(group, "num_tokens");
  prompt.prompt_tokens = integer(group, "prompt_tokens");
  prompt.answer_start = group.integer("answer_start");
  prompt.answer_end = group.integer("answer_end");
  prompt.tokens = integers<std::int32_t>(group.dataset("tokens"));
  if (group.has("text")) prompt.text = long_text(group.dataset("text"));
  const h5::Object layers = group.group("layers");
  std::vector<std::int64_t> indices;
  for (const std::string& name : layers.members()) {
    const auto index = decimal(name);
    if (!index || *index >= info.num_layers) {
      throw Error("{}: '{}' is not a layer number below num_layers = {}.", layers.where(), name, info.num_layers);
    }
    indices.push_back(*index);
  }
  std::sort(indices.begin(), indices.end());
  for (const std::int64_t index : indices) prompt.layers.push_back(layer(layers.group(std::to_string(index)), index));
  return prompt;
}

/// Numeric names by value, then the others in alphabetic order.
bool comes_before(const std::string& a, const std::string& b) {
  const auto x = decimal(a), y = decimal(b);
  if (x && y) return *x < *y;
  return x.has_value() != y.has_value() ? x.has_value() : a < b;
}

TraceInfo Parser::file(const h5::Object& root) {
  check_version(root, path_);
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
  const h5::Object prompts = root.group("prompts");
  std::vector<std::string> ids = prompts.members();
  std::sort(ids.begin(), ids.end(), &comes_before);
  for (const std::string& id : ids) info.prompts.push_back(prompt(prompts.group(id), id, info));
  check(info, path_);
  for (const PromptInfo& prompt : info.prompts) {
    const h5::Object layers = prompts.group(prompt.id).group("layers");
    for (const LayerInfo& layer : prompt.layers) arrays(layers.group(std::to_string(layer.layer)), info, prompt, layer);
  }
  return info;
}

}  // namespace

TraceInfo parse(const h5::Object& file, const std::string& path, std::uint64_t length) {
  return Parser(path, length).file(file);
}

}  // namespace kvbench::trace
