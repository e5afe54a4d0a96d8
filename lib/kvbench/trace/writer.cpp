// SPDX-License-Identifier: Apache-2.0
#include <kvbench/trace/writer.hpp>

#include <cmath>
#include <optional>
#include <tuple>
#include <vector>

#include <kvbench/core/atomic_file.hpp>
#include <kvbench/core/error.hpp>
#include <kvbench/trace/coverage.hpp>
#include <kvbench/trace/create.hpp>
#include <kvbench/trace/float_type.hpp>
#include <kvbench/trace/layout.hpp>
#include <kvbench/trace/slab.hpp>

namespace kvbench::trace {
namespace {

/// Converts `data` to the 16-bit type of the trace.
std::vector<std::uint16_t> narrow_all(std::span<const float> data, Dtype dtype) {
  std::vector<std::uint16_t> halves;
  halves.reserve(data.size());
  for (const float value : data) halves.push_back(narrow(value, dtype));
  return halves;
}

h5::Object open_array(const h5::Object& file, const PromptInfo& prompt, const LayerInfo& layer, Array array) {
  return file.group("prompts")
      .group(prompt.id)
      .group("layers")
      .group(std::to_string(layer.layer))
      .dataset(name_of(array));
}

/// The words of a file for `data`, in the type of an array; none for fp32.
struct Words {
  std::vector<std::uint16_t> halves;
  std::vector<std::int8_t> bytes;
  std::vector<float> scales;  ///< of the rows of probes

  Words(std::span<const float> data, Dtype dtype, std::int64_t dim) {
    if (dtype == Dtype::i8) {
      round_rows(data, static_cast<std::size_t>(dim));
    } else if (dtype != Dtype::f32) {
      halves = narrow_all(data, dtype);
    }
  }

  const void* of(std::span<const float> data) const {
    if (!bytes.empty()) return bytes.data();
    return halves.empty() ? static_cast<const void*>(data.data()) : halves.data();
  }

 private:
  /// Rounds each row to multiples of 1/127 of its largest value.
  void round_rows(std::span<const float> data, std::size_t dim) {
    bytes.reserve(data.size());
    for (std::size_t begin = 0; begin < data.size(); begin += dim) {
      const auto row = data.subspan(begin, dim);
      float largest = 0;
      for (const float value : row) largest = std::max(largest, std::fabs(value));
      const float scale = largest / 127;
      for (const float value : row)
        bytes.push_back(scale > 0 && std::isfinite(value) ? static_cast<std::int8_t>(std::lround(value / scale)) : 0);
      scales.push_back(scale);
    }
  }
};

/// The first row that is not zero and whose numbers a 16-bit type rounds more coarsely than bf16, down to zeros, or -1.
/// Such numbers beside larger ones of their row round as finely as these.
std::int64_t lost_row(std::span<const float> data, const Words& words, Dtype dtype, std::int64_t dim) {
  if (words.halves.empty()) return -1;
  for (std::size_t begin = 0; begin < data.size(); begin += static_cast<std::size_t>(dim)) {
    float largest = 0;
    for (const float value : data.subspan(begin, static_cast<std::size_t>(dim)))
      largest = std::max(largest, std::fabs(value));
    if (largest > 0 && largest < coarse_below(dtype)) return static_cast<std::int64_t>(begin) / dim;
  }
  return -1;
}

}  // namespace

struct Writer::Impl {
  std::string path;
  TraceInfo info;
  WriteOptions options;
  AtomicFile target;
  /// uncompressed until commit(), because rows arrive in any order and pieces, which compressed chunks do not support
  std::optional<h5::Object> file;
  std::map<std::tuple<std::size_t, std::size_t, Array, std::int64_t>, Coverage> written;

  Impl(std::string name, const TraceInfo& description, WriteOptions chosen)
      : path(std::move(name)), info(description), options(chosen), target(path) {
    const h5::Session session;
    try {
      file = create(target.temporary(), path, info, false);
      file->flush();
      target.reserve(file->size());
    } catch (const h5::Failure& failure) {
      abandon();
      throw h5::write_error(failure);
    } catch (...) {
      abandon();
      throw;
    }
  }

  ~Impl() {
    const h5::Session session;
    abandon();
  }

  /// Empties the discarded file before it is closed, because closing flushes the buffers of HDF5, which would fail on a
  /// full disk.
  void abandon() {
    if (!file) return;
    target.empty();
    file.reset();
  }

  void check_complete() const {
    for_each_head([&](std::size_t p, std::size_t l, Array array, std::int64_t head, const Shape& shape) {
      const auto found = written.find({p, l, array, head});
      const std::int64_t gap = found == written.end() ? 0 : found->second.first_gap(shape.rows);
      if (gap < shape.rows) {
        const PromptInfo& prompt = info.prompts[p];
        throw Error("{}: {}: row {} of head {} was never written; write every row before commit().", path,
                    path_of(prompt, prompt.layers[l], array), gap, head);
      }
    });
  }

  template <class F>
  void for_each_head(F visit) const {
    for (std::size_t p = 0; p < info.prompts.size(); ++p) {
      for (std::size_t l = 0; l < info.prompts[p].layers.size(); ++l) {
        const LayerInfo& layer = info.prompts[p].layers[l];
        for (const Array array : all_arrays) {
          if (!holds(layer, array)) continue;
          const Shape shape = shape_of(info, info.prompts[p], layer, array);
          for (std::int64_t head = 0; head < shape.heads; ++head) visit(p, l, array, head, shape);
        }
      }
    }
  }

  void close_and_publish(h5::Object& finished, AtomicFile& at) {
    finished.flush();
    finished.close();
    at.publish();
  }

  void publish_compressed() {
    AtomicFile packed_target(path, ".z");
    h5::Object packed = create(packed_target.temporary(), path, info, true);
    try {
      std::vector<std::byte> slab_bytes;
      std::optional<h5::Object> out;  // stays open for all heads of an array, several of which share a chunk
      for_each_head([&](std::size_t p, std::size_t l, Array array, std::int64_t head, const Shape& shape) {
        const Dtype dtype = dtype_of(info, array);
        const h5::Handle type = h5::element_type(dtype);
        const PromptInfo& prompt = info.prompts[p];
        const Slab slab = slab_of(dims_of(info, prompt, prompt.layers[l], array), shape, head, 0, shape.rows);
        slab_bytes.resize(static_cast<std::size_t>(shape.rows * shape.dim) * size_of(dtype));
        open_array(*file, prompt, prompt.layers[l], array)
            .read_slab(type.get(), slab.start, slab.count, slab_bytes.data());
        if (head == 0) out = open_array(packed, prompt, prompt.layers[l], array);
        out->write_slab(type.get(), slab.start, slab.count, slab_bytes.data());
        if (head + 1 == shape.heads) out->close();
      });
      close_and_publish(packed, packed_target);
    } catch (...) {
      packed_target.empty();
      throw;
    }
  }
};

Writer::Writer(std::string path, const TraceInfo& info, WriteOptions options) {
  check(info, path);
  impl_ = std::make_unique<Impl>(std::move(path), info, options);
}

Writer::~Writer() = default;

void Writer::write_rows(std::size_t prompt, std::size_t layer, Array array, std::int64_t head, std::int64_t row_begin,
                        std::span<const float> data) {
  const PromptInfo& p = impl_->info.prompts.at(prompt);
  const LayerInfo& l = p.layers.at(layer);
  const std::string at = impl_->path + ": " + path_of(p, l, array);
  const Shape shape = shape_of(impl_->info, p, l, array);
  const std::vector<hsize_t> dims = dims_of(impl_->info, p, l, array);
  if (!impl_->file) throw Error("{}: commit() was already called.", impl_->path);
  if (!holds(l, array)) throw Error("{}: was not declared; set it in the description of the layer.", at);
  const std::int64_t rows = static_cast<std::int64_t>(data.size()) / shape.dim;
  if (rows * shape.dim != static_cast<std::int64_t>(data.size()) || head < 0 || head >= shape.heads || row_begin < 0 ||
      rows > shape.rows - row_begin || !is_slab(dims, shape, row_begin, rows)) {
    throw Error("{}: head {}, rows from {}, {} values do not fit the shape [{}, {}, {}].", at, head, row_begin,
                data.size(), shape.heads, shape.rows, shape.dim);
  }
  if (rows == 0) return;
  const Dtype dtype = dtype_of(impl_->info, array);
  const Words words(data, dtype, shape.dim);
  for (std::size_t i = 0; i < data.size(); ++i) {
    if (std::isfinite(data[i]) && (words.halves.empty() || std::isfinite(widen(words.halves[i], dtype)))) continue;
    const auto index = static_cast<std::int64_t>(i);
    throw Error(
        "{}: head {}, row {}, column {}: {} {}.", at, head, row_begin + index / shape.dim, index % shape.dim, data[i],
        std::isfinite(data[i]) ? fmt::format("does not fit {}; use bf16 or f32", name_of(dtype)) : "is not finite");
  }
  if (const std::int64_t row = lost_row(data, words, dtype, shape.dim); row >= 0) {
    throw Error("{}: head {}, row {}: all its numbers are below {:.2g}, where {} loses digits; use {}f32.", at, head,
                row_begin + row, coarse_below(dtype), name_of(dtype), dtype == Dtype::f16 ? "bf16 or " : "");
  }
  if (array == Array::probes) write_rows(prompt, layer, Array::probe_scales, head, row_begin, words.scales);
  const Slab slab = slab_of(dims, shape, head, row_begin, rows);
  const h5::Session session;
  try {
    h5::Object dataset = open_array(*impl_->file, p, l, array);
    dataset.write_slab(h5::element_type(dtype).get(), slab.start, slab.count, words.of(data));
    dataset.close();
  } catch (const h5::Failure& failure) {
    throw h5::write_error(failure);
  }
  impl_->written[{prompt, layer, array, head}].add(row_begin, row_begin + rows);
}

void Writer::commit() {
  if (!impl_->file) throw Error("{}: commit() was already called.", impl_->path);
  impl_->check_complete();
  const h5::Session session;
  try {
    if (impl_->options.compress) {
      impl_->publish_compressed();
      impl_->abandon();
    } else {
      impl_->close_and_publish(*impl_->file, impl_->target);
      impl_->file.reset();
    }
  } catch (const h5::Failure& failure) {
    throw h5::write_error(failure);
  }
}

}  // namespace kvbench::trace
