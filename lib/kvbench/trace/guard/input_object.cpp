// SPDX-License-Identifier: Apache-2.0
#include <kvbench/trace/guard/input_object.hpp>

#include <algorithm>
#include <utility>

#include <kvbench/core/error.hpp>

namespace kvbench::trace::h5 {
namespace {

herr_t collect_name(hid_t, const char* name, const H5L_info_t*, void* out) {
  try {
    static_cast<std::vector<std::string>*>(out)->emplace_back(name);
    return 0;
  } catch (...) {
    return -1;
  }
}

}  // namespace

InputObject InputObject::open_file(const std::string& path, std::shared_ptr<Claims> claims) {
  return {Object::open_file(path), std::move(claims)};
}

std::vector<std::string> InputObject::members() const {
  std::vector<std::string> names;
  require(H5Literate(id(), H5_INDEX_NAME, H5_ITER_INC, nullptr, &collect_name, &names), "cannot list the members");
  return names;
}

InputObject InputObject::dataset(const std::string& member, Extent extent) const {
  InputObject found(Object::dataset(member), claims_);
  found.check_storage(extent);
  return found;
}

std::vector<hsize_t> InputObject::dims() const {
  const Handle space = own(H5Dget_space(id()), &H5Sclose, "cannot read the shape");
  const H5S_class_t kind = H5Sget_simple_extent_type(space.get());
  if (kind == H5S_SCALAR) return {};
  if (kind != H5S_SIMPLE) fail("is not an array");
  std::vector<hsize_t> dims(
      static_cast<std::size_t>(require(H5Sget_simple_extent_ndims(space.get()), "cannot read the rank")));
  require(H5Sget_simple_extent_dims(space.get(), dims.data(), nullptr), "cannot read the shape");
  return dims;
}

Handle InputObject::type() const { return own(H5Dget_type(id()), &H5Tclose, "cannot read the type"); }

Storage InputObject::storage() const {
  const Handle properties = own(H5Dget_create_plist(id()), &H5Pclose, "cannot read the storage");
  Storage storage;
  storage.layout = H5Pget_layout(properties.get());
  storage.external = require(H5Pget_external_count(properties.get()), "cannot read the storage") > 0;
  const int filters = require(H5Pget_nfilters(properties.get()), "cannot read the filters");
  for (unsigned i = 0; i < static_cast<unsigned>(filters); ++i) {
    unsigned flags = 0;
    std::size_t values = 0;
    storage.filters.push_back(H5Pget_filter2(properties.get(), i, &flags, &values, nullptr, 0, nullptr, nullptr));
  }
  if (storage.layout == H5D_CHUNKED) {
    storage.chunk_dims.resize(H5S_MAX_RANK);
    const int rank =
        require(H5Pget_chunk(properties.get(), H5S_MAX_RANK, storage.chunk_dims.data()), "cannot read the chunk");
    storage.chunk_dims.resize(static_cast<std::size_t>(rank));
  }
  if (storage.layout == H5D_CONTIGUOUS && !storage.external) storage.offset = H5Dget_offset(id());
  storage.bytes = H5Dget_storage_size(id());
  H5Eclear2(H5E_DEFAULT);
  return storage;
}

void InputObject::read(hid_t memory_type, void* out) const {
  const Storage stored = storage();
  const std::vector<hsize_t> whole = dims();
  if (stored.layout == H5D_CHUNKED)
    return read_chunks(stored, memory_type, std::vector<hsize_t>(whole.size()), whole, out);
  require(H5Dread(id(), memory_type, H5S_ALL, H5S_ALL, H5P_DEFAULT, out), "cannot be read");
}

std::size_t InputObject::length() const {
  std::size_t count = 1;
  for (const hsize_t dim : dims()) count *= static_cast<std::size_t>(dim);
  return count;
}

std::vector<double> InputObject::numbers() const {
  if (H5Tequal(type().get(), H5T_IEEE_F64LE) <= 0)
    throw Error("{}: its elements are not f64 (little-endian).", where());
  std::vector<double> values(length());
  if (!values.empty()) read(H5T_NATIVE_DOUBLE, values.data());
  return values;
}

template <class T>
std::vector<T> InputObject::integers() const {
  const Handle type = this->type();
  if (H5Tget_class(type.get()) != H5T_INTEGER || H5Tget_size(type.get()) > 8)
    throw Error("{}: must have integer elements.", where());
  std::vector<std::int64_t> wide(length());
  if (!wide.empty()) read(H5T_NATIVE_INT64, wide.data());
  const auto misfit = std::ranges::find_if(wide, [](std::int64_t value) { return !std::in_range<T>(value); });
  if (misfit != wide.end())
    throw Error("{}: entry {} is {}, which does not fit.", where(), misfit - wide.begin(), *misfit);
  return {wide.begin(), wide.end()};
}
template std::vector<std::int32_t> InputObject::integers() const;
template std::vector<std::int64_t> InputObject::integers() const;

void InputObject::read_slab(hid_t memory_type, const std::vector<hsize_t>& start, const std::vector<hsize_t>& count,
                            void* out) const {
  if (const Storage stored = storage(); stored.layout == H5D_CHUNKED)
    return read_chunks(stored, memory_type, start, count, out);
  Object::read_slab(memory_type, start, count, out);
}

}  // namespace kvbench::trace::h5
