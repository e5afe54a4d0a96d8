// SPDX-License-Identifier: Apache-2.0
// Reads chunked datasets. The filters of HDF5 1.10 inflate a chunk to whatever its bytes expand to and trust the result
// to have the size of a chunk; here the size of a chunk bounds both its stored and its inflated bytes.
#include <algorithm>
#include <cstring>

#include <fmt/ranges.h>
#include <zlib.h>

#include <kvbench/trace/guard/input_object.hpp>

namespace kvbench::trace::h5 {
namespace {

using Dims = std::vector<hsize_t>;

std::size_t count_of(const Dims& dims) {
  std::size_t count = 1;
  for (const hsize_t dim : dims) count *= static_cast<std::size_t>(dim);
  return count;
}

/// Row-major index of `at` in an array of these dimensions.
std::size_t index_of(const Dims& at, const Dims& dims) {
  std::size_t index = 0;
  for (std::size_t i = 0; i < dims.size(); ++i)
    index = index * static_cast<std::size_t>(dims[i]) + static_cast<std::size_t>(at[i]);
  return index;
}

Dims minus(Dims a, const Dims& b) {
  std::ranges::transform(a, b, a.begin(), std::minus<>());
  return a;
}

/// Calls visit(index) for first <= index < last in steps of `step`, in row-major order.
template <class F>
void for_each_index(const Dims& first, const Dims& last, const Dims& step, F visit) {
  if (!std::ranges::equal(first, last, std::less<>())) return;
  Dims at = first;
  for (std::size_t d = at.size(); d > 0;) {
    visit(std::as_const(at));
    for (d = at.size(); d > 0 && (at[d - 1] += step[d - 1]) >= last[d - 1]; --d) at[d - 1] = first[d - 1];
  }
}

/// Inflates `in` to exactly `out`; false where it does not expand to that size.
bool inflate_exactly(std::vector<Bytef>& in, std::vector<Bytef>& out) {
  z_stream stream{};
  stream.next_in = in.data();
  stream.avail_in = static_cast<uInt>(in.size());
  stream.next_out = out.data();
  stream.avail_out = static_cast<uInt>(out.size());
  if (::inflateInit(&stream) != Z_OK) return false;
  const int result = ::inflate(&stream, Z_FINISH);
  ::inflateEnd(&stream);
  return result == Z_STREAM_END && stream.avail_out == 0;
}

/// The elements of one chunk of a dataset.
class Chunk {
 public:
  Chunk(const Dims& dims, std::size_t element, const std::vector<H5Z_filter_t>& filters)
      : dims_(dims), element_(element), filters_(filters), bytes_(count_of(dims) * element) {}

  /// Reads the chunk that begins at `offset`; false where it is damaged.
  bool load(hid_t dataset, const Dims& offset) {
    hsize_t stored = 0;
    std::uint32_t skipped = 0;  // bit i: filter i was not applied
    if (H5Dget_chunk_storage_size(dataset, offset.data(), &stored) < 0 ||
        stored > ::compressBound(static_cast<uLong>(bytes_.size())))
      return false;
    stored_.resize(static_cast<std::size_t>(stored));
    if (H5Dread_chunk(dataset, H5P_DEFAULT, offset.data(), &skipped, stored_.data()) < 0) return false;
    const auto applied = [&](H5Z_filter_t filter) {
      const auto at = std::ranges::find(filters_, filter) - filters_.begin();
      return at < std::ssize(filters_) && (skipped >> at & 1U) == 0;
    };
    shuffled_ = element_ > 1 && applied(H5Z_FILTER_SHUFFLE);
    if (applied(H5Z_FILTER_DEFLATE)) return inflate_exactly(stored_, bytes_);
    stored_.swap(bytes_);
    return bytes_.size() == count_of(dims_) * element_;
  }

  /// Copies `count` elements from `at` on, an index within the chunk, to `out`.
  void copy(const Dims& at, std::size_t count, std::byte* out) const {
    const std::size_t first = index_of(at, dims_);
    if (!shuffled_) {
      std::memcpy(out, bytes_.data() + first * element_, count * element_);
      return;
    }
    const std::size_t plane = bytes_.size() / element_;  // byte b of all elements, then byte b + 1
    for (std::size_t b = 0; b < element_; ++b) {
      for (std::size_t i = 0; i < count; ++i)
        out[i * element_ + b] = static_cast<std::byte>(bytes_[b * plane + first + i]);
    }
  }

 private:
  Dims dims_;
  std::size_t element_;
  std::vector<H5Z_filter_t> filters_;
  std::vector<Bytef> stored_, bytes_;
  bool shuffled_ = false;
};

}  // namespace

void InputObject::read_chunks(const Storage& stored, hid_t memory_type, const Dims& start, const Dims& count,
                              void* out) const {
  const Handle type = this->type();
  const std::size_t element = H5Tget_size(type.get()), wanted = H5Tget_size(memory_type), elements = count_of(count);
  std::vector<std::byte> wide(element == wanted ? 0
                                                : elements * std::max(element, wanted));  // H5Tconvert() works in place
  std::byte* const slab = wide.empty() ? static_cast<std::byte*>(out) : wide.data();
  Dims end = start, first = start;
  for (std::size_t i = 0; i < end.size(); ++i) {
    end[i] += count[i];
    first[i] -= first[i] % stored.chunk_dims[i];
  }
  Chunk chunk(stored.chunk_dims, element, stored.filters);
  for_each_index(first, end, stored.chunk_dims, [&](const Dims& offset) {
    if (!chunk.load(id(), offset)) fail(fmt::format("the chunk at [{}] is damaged", fmt::join(offset, ", ")));
    Dims from = offset, to = offset;
    for (std::size_t i = 0; i < from.size(); ++i) {
      from[i] = std::max(offset[i], start[i]);
      to[i] = std::min(offset[i] + stored.chunk_dims[i], end[i]);
    }
    const auto row = static_cast<std::size_t>(to.back() - from.back());
    Dims step(from.size(), 1);
    step.back() = row;
    for_each_index(from, to, step, [&](const Dims& at) {
      chunk.copy(minus(at, offset), row, slab + index_of(minus(at, start), count) * element);
    });
  });
  require(H5Tconvert(type.get(), memory_type, elements, slab, nullptr, H5P_DEFAULT), "cannot be converted");
  if (!wide.empty()) std::memcpy(out, slab, elements * wanted);
}

}  // namespace kvbench::trace::h5
