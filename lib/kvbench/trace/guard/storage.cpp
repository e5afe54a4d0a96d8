// SPDX-License-Identifier: Apache-2.0
// Checks of the storage of a dataset, before memory is allocated or a value is read.
#include <algorithm>
#include <limits>

#include <fmt/ranges.h>

#include <kvbench/core/error.hpp>
#include <kvbench/trace/guard/global_heap.hpp>
#include <kvbench/trace/guard/input_object.hpp>

namespace kvbench::trace::h5 {
namespace {

/// Deflate compresses by at most this factor.
constexpr std::uint64_t max_inflation = 1032;
/// Chunks and compressed datasets up to this size need no relation to the sizes of slab and file: 32 MiB is what
/// h5repack writes.
constexpr std::uint64_t small_chunk = std::uint64_t{32} << 20, small_whole = std::uint64_t{64} << 20;

std::uint64_t product(std::uint64_t first, const std::vector<hsize_t>& dims) {
  for (const hsize_t dim : dims) {
    if (__builtin_mul_overflow(first, dim, &first)) return std::numeric_limits<std::uint64_t>::max();
  }
  return first;
}

/// Bytes of an element of `type` in a file.
std::uint64_t stored_size(hid_t type) {
  // In memory a variable-length string is a pointer; the file stores a reference into its heap.
  return H5Tis_variable_str(type) > 0 ? std::tuple_size_v<HeapReference> : H5Tget_size(type);
}

}  // namespace

void InputObject::check_filters(const Storage& stored) const {
  static const std::vector<H5Z_filter_t> both{H5Z_FILTER_SHUFFLE, H5Z_FILTER_DEFLATE}, shuffle{H5Z_FILTER_SHUFFLE},
      deflate{H5Z_FILTER_DEFLATE}, none;
  if (stored.filters == none || stored.filters == deflate || stored.filters == both || stored.filters == shuffle)
    return;
  throw Error(
      "{}: stored with HDF5 filter {}; only shuffle and deflate are read, once and in this order. Copy it with "
      "h5repack -f NONE.",
      where(), fmt::join(stored.filters, ", "));
}

void InputObject::check_chunks(const Storage& stored, const std::vector<hsize_t>& dims, std::uint64_t element,
                               std::uint64_t slab) const {
  const std::uint64_t chunk = product(element, stored.chunk_dims), limit = std::max(slab, small_chunk);
  if (chunk == 0 || stored.chunk_dims.size() != dims.size())
    throw Error("{}: its chunks are invalid; it is damaged.", where());
  if (chunk > limit) {
    throw Error(
        "{}: its chunks hold {} bytes, and kvbench reads chunks of up to {}; copy it with h5repack -f NONE, or with "
        "smaller chunks.",
        where(), chunk, limit);
  }
  hsize_t expected = 1, written = 0;
  for (std::size_t i = 0; i < dims.size(); ++i)
    expected *= dims[i] / stored.chunk_dims[i] + (dims[i] % stored.chunk_dims[i] > 0);
  const Handle space = own(H5Dget_space(id()), &H5Sclose, "cannot read the shape");
  require(H5Dget_num_chunks(id(), space.get(), &written), "cannot count the chunks");
  if (written != expected) {
    throw Error("{}: {} of {} chunks were written; the file is incomplete.", where(), written, expected);
  }
}

void InputObject::count_claims(const Storage& stored, std::uint64_t bytes, Extent extent) const {
  Claims& all = *claims_;
  if (!all.opened.insert(name()).second) return;
  if (stored.bytes > all.length - all.stored) {
    throw Error(
        "{}: the datasets up to this one claim more bytes than the file has; it is damaged, or has several names for "
        "one dataset.",
        where());
  }
  all.stored += stored.bytes;
  if (extent == Extent::part) return;
  const std::uint64_t limit = readable_bytes();
  if (bytes > limit - all.whole) {
    throw Error(
        "{}: is compressed, and takes {} bytes in memory; with the datasets before it that is more than {}. Copy the "
        "file with h5repack -f NONE.",
        where(), bytes, limit);
  }
  all.whole += bytes;
}

std::uint64_t InputObject::readable_bytes() const { return std::max(claims_->length, small_whole); }

void InputObject::check_storage(Extent extent) const {
  const std::vector<hsize_t> shape = dims();
  const std::uint64_t element = stored_size(type().get()), bytes = product(element, shape), length = claims_->length;
  if (bytes / max_inflation > length) {
    throw Error("{}: claims {} bytes, more than a file of {} bytes can hold; it is damaged.", where(), bytes, length);
  }
  const Storage stored = storage();
  if (stored.external || stored.layout == H5D_VIRTUAL)
    throw Error("{}: is stored in another file; copy it into this file with h5repack.", where());
  if (stored.layout != H5D_CONTIGUOUS && stored.layout != H5D_CHUNKED) {
    throw Error("{}: has an unsupported storage layout; copy it with h5repack -l CONTI.", where());
  }
  check_filters(stored);
  if (stored.layout == H5D_CHUNKED) {
    const bool by_slab = extent == Extent::part && shape.size() > 1 && shape[0] > 0;
    check_chunks(stored, shape, element, by_slab ? bytes / shape[0] : bytes);
  }
  if (stored.layout == H5D_CONTIGUOUS && bytes > 0) {
    if (stored.offset == HADDR_UNDEF) throw Error("{}: was never written; the file is incomplete.", where());
    if (stored.bytes != bytes || stored.offset > length || bytes > length - stored.offset) {
      throw Error("{}: its {} bytes extend beyond the end of the file; it is truncated or damaged.", where(), bytes);
    }
  }
  count_claims(stored, bytes, extent);
}

}  // namespace kvbench::trace::h5
