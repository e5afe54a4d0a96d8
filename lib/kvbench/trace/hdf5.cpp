// SPDX-License-Identifier: Apache-2.0
#include <kvbench/trace/hdf5.hpp>

#include <algorithm>

#include <fmt/format.h>

#include <kvbench/core/error.hpp>

namespace kvbench::trace::h5 {
namespace {

std::mutex& library_mutex() {
  static auto* mutex = new std::mutex;  // outlives every static Reader
  return *mutex;
}

herr_t keep_innermost(unsigned n, const H5E_error2_t* error, void* out) {
  if (n == 0 && error->desc != nullptr) *static_cast<std::string*>(out) = error->desc;
  return 0;
}

std::string innermost_reason() {
  std::string reason;
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, &keep_innermost, &reason);
  H5Eclear2(H5E_DEFAULT);
  return reason;
}

// "file write failed: time = ..., errno = 28, error message = 'No space left on device', buf = 0x..." has the reason in
// the quotes.
std::string shorten(const std::string& reason) {
  static const std::string mark = "error message = '";
  const std::size_t begin = reason.find(mark);
  if (begin == std::string::npos) return reason;
  const std::size_t end = reason.find('\'', begin + mark.size());
  return reason.substr(begin + mark.size(), end - begin - mark.size());
}

herr_t collect_name(hid_t, const char* name, const H5L_info_t*, void* out) {
  try {
    static_cast<std::vector<std::string>*>(out)->emplace_back(name);
    return 0;
  } catch (...) {
    return -1;
  }
}

Handle creation_properties(hid_t kind) {
  Handle properties(H5Pcreate(kind), &H5Pclose);
  H5Pset_obj_track_times(properties.get(), false);  // equal content gives equal bytes
  return properties;
}

}  // namespace

IoError write_error(const Failure& failure) {
  return IoError(
      "{}. Free some space, raise the file size limit or write to another disk; no file was written under the final "
      "name.",
      failure.what());
}

Session::Session() : lock_(library_mutex()) {
  // Every object is closed by its owner. The clean-up of HDF5 at exit would crash on files that a full disk kept it
  // from closing.
  H5dont_atexit();
  H5open();
  H5Eget_auto2(H5E_DEFAULT, &printer_, &printer_data_);
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
}

Session::~Session() { H5Eset_auto2(H5E_DEFAULT, printer_, printer_data_); }

Handle float_type(Dtype dtype) {
  Handle type(H5Tcopy(H5T_IEEE_F32LE), &H5Tclose);
  if (dtype == Dtype::f32) return type;
  const bool half = dtype == Dtype::f16;
  const std::size_t exponent = half ? 5 : 8, mantissa = half ? 10 : 7;
  H5Tset_fields(type.get(), 15, mantissa, exponent, 0, mantissa);
  H5Tset_size(type.get(), 2);
  H5Tset_ebias(type.get(), half ? 15 : 127);
  return type;
}

void Object::fail(const std::string& doing) const {
  const std::string reason = innermost_reason();
  throw Failure(fmt::format("{}: {}{}{}{}", where(), doing, reason.empty() ? "" : " (", shorten(reason),
                            reason.empty() ? "" : ")"));
}

Object Object::open_file(const std::string& path, std::shared_ptr<Claims> claims) {
  Object file({}, path, "/");
  const Handle access = file.own(H5Pcreate(H5P_FILE_ACCESS), &H5Pclose, "cannot set up");
#if H5_VERSION_GE(1, 10, 7)
  H5Pset_file_locking(access.get(), true, true);  // not required where the file system has no locks
#endif
  const hid_t id = H5Fopen(path.c_str(), H5F_ACC_RDONLY, access.get());
  if (id < 0) {
    const std::string reason = innermost_reason();
    if (reason.find("lock file") == reason.npos)
      throw Failure(fmt::format("{}: cannot be opened ({})", path, shorten(reason)));
    throw Error(
        "{}: HDF5 cannot lock the file ({}); close it in programs that write it, or set HDF5_USE_FILE_LOCKING=FALSE "
        "where its file system has no locks.",
        path, shorten(reason));
  }
  file.handle_ = Handle(id, &H5Fclose);
  file.claims_ = std::move(claims);
  return file;
}

Object Object::create_file(const std::string& path, const std::string& final_name, H5F_libver_t format) {
  Object file({}, final_name, "/");
  const Handle access = file.own(H5Pcreate(H5P_FILE_ACCESS), &H5Pclose, "cannot set up");
  H5Pset_alignment(access.get(), 4096, 4096);
  H5Pset_libver_bounds(access.get(), format, H5F_LIBVER_V110);
  H5Pset_fclose_degree(access.get(), H5F_CLOSE_STRONG);
  const Handle creation = creation_properties(H5P_FILE_CREATE);
  file.handle_ = file.own(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, creation.get(), access.get()), &H5Fclose,
                          "cannot create the file");
  return file;
}

std::vector<std::string> Object::members() const {
  std::vector<std::string> names;
  require(H5Literate(id(), H5_INDEX_NAME, H5_ITER_INC, nullptr, &collect_name, &names), "cannot list the members");
  return names;
}

bool Object::has(const std::string& member) const {
  return require(H5Lexists(id(), member.c_str(), H5P_DEFAULT), "cannot look for '" + member + "'") > 0;
}

Object Object::open(const std::string& member, H5I_type_t kind, const char* kind_name) const {
  Object found({}, file_, child(member));
  if (!has(member)) found.fail(fmt::format("{} is missing", kind_name));
  H5L_info_t link;
  found.require(H5Lget_info(id(), member.c_str(), &link, H5P_DEFAULT), "cannot inspect the link");
  if (link.type != H5L_TYPE_HARD) found.fail("is a soft or external link; a file must contain its data");
  found.claims_ = claims_;
  found.handle_ = found.own(H5Oopen(id(), member.c_str(), H5P_DEFAULT), &H5Oclose, "cannot open");
  if (H5Iget_type(found.id()) != kind) found.fail(fmt::format("is not a {}", kind_name));
  return found;
}

Object Object::group(const std::string& member) const { return open(member, H5I_GROUP, "group"); }

Object Object::dataset(const std::string& member, Extent extent) const {
  Object found = open(member, H5I_DATASET, "dataset");
  if (claims_) found.check_storage(extent);
  return found;
}

Object Object::create_group(const std::string& member) const {
  Object made({}, file_, child(member));
  const Handle creation = creation_properties(H5P_GROUP_CREATE);
  made.handle_ = made.own(H5Gcreate2(id(), member.c_str(), H5P_DEFAULT, creation.get(), H5P_DEFAULT), &H5Gclose,
                          "cannot create the group");
  return made;
}

Object Object::create_dataset(const std::string& member, hid_t type, const std::vector<hsize_t>& dims,
                              const std::vector<hsize_t>& chunk) const {
  Object made({}, file_, child(member));
  const Handle creation = creation_properties(H5P_DATASET_CREATE);
  H5Pset_fill_time(creation.get(), H5D_FILL_TIME_NEVER);
  if (chunk.empty()) {
    H5Pset_alloc_time(creation.get(), H5D_ALLOC_TIME_EARLY);
  } else {
    made.require(H5Pset_chunk(creation.get(), static_cast<int>(chunk.size()), chunk.data()), "cannot set the chunk");
    H5Pset_shuffle(creation.get());
    made.require(H5Pset_deflate(creation.get(), 4), "this HDF5 library cannot compress");
  }
  const Handle space = made.own(
      dims.empty() ? H5Screate(H5S_SCALAR) : H5Screate_simple(static_cast<int>(dims.size()), dims.data(), nullptr),
      &H5Sclose, "cannot describe the shape");
  made.handle_ = made.own(H5Dcreate2(id(), member.c_str(), type, space.get(), H5P_DEFAULT, creation.get(), H5P_DEFAULT),
                          &H5Dclose, "cannot create the dataset");
  return made;
}

std::vector<hsize_t> Object::dims() const {
  const Handle space = own(H5Dget_space(id()), &H5Sclose, "cannot read the shape");
  const H5S_class_t kind = H5Sget_simple_extent_type(space.get());
  if (kind == H5S_SCALAR) return {};
  if (kind != H5S_SIMPLE) fail("is not an array");
  std::vector<hsize_t> dims(
      static_cast<std::size_t>(require(H5Sget_simple_extent_ndims(space.get()), "cannot read the rank")));
  require(H5Sget_simple_extent_dims(space.get(), dims.data(), nullptr), "cannot read the shape");
  return dims;
}

Handle Object::type() const { return own(H5Dget_type(id()), &H5Tclose, "cannot read the type"); }

Storage Object::storage() const {
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

Handle Object::slab_space(const std::vector<hsize_t>& start, const std::vector<hsize_t>& count) const {
  Handle space = own(H5Dget_space(id()), &H5Sclose, "cannot read the shape");
  require(H5Sselect_hyperslab(space.get(), H5S_SELECT_SET, start.data(), nullptr, count.data(), nullptr),
          "cannot select rows");
  return space;
}

void Object::read(hid_t memory_type, void* out) const {
  const Storage stored = storage();
  const std::vector<hsize_t> whole = dims();
  if (stored.layout == H5D_CHUNKED)
    return read_chunks(stored, memory_type, std::vector<hsize_t>(whole.size()), whole, out);
  require(H5Dread(id(), memory_type, H5S_ALL, H5S_ALL, H5P_DEFAULT, out), "cannot be read");
}

template <class T>
std::vector<T> Object::integers() const {
  const Handle type = this->type();
  if (H5Tget_class(type.get()) != H5T_INTEGER || H5Tget_size(type.get()) > 8)
    throw Error("{}: must have integer elements.", where());
  std::size_t count = 1;
  for (const hsize_t dim : dims()) count *= static_cast<std::size_t>(dim);
  std::vector<std::int64_t> wide(count);
  if (count > 0) read(H5T_NATIVE_INT64, wide.data());
  const auto misfit = std::ranges::find_if(wide, [](std::int64_t value) { return !std::in_range<T>(value); });
  if (misfit != wide.end())
    throw Error("{}: entry {} is {}, which does not fit.", where(), misfit - wide.begin(), *misfit);
  return {wide.begin(), wide.end()};
}
template std::vector<std::int32_t> Object::integers() const;
template std::vector<std::int64_t> Object::integers() const;

void Object::read_slab(hid_t memory_type, const std::vector<hsize_t>& start, const std::vector<hsize_t>& count,
                       void* out) const {
  if (const Storage stored = storage(); stored.layout == H5D_CHUNKED)
    return read_chunks(stored, memory_type, start, count, out);
  const Handle file_space = slab_space(start, count);
  const Handle memory_space =
      own(H5Screate_simple(static_cast<int>(count.size()), count.data(), nullptr), &H5Sclose, "no space");
  require(H5Dread(id(), memory_type, memory_space.get(), file_space.get(), H5P_DEFAULT, out), "cannot be read");
}

void Object::write(hid_t memory_type, const void* data) const {
  require(H5Dwrite(id(), memory_type, H5S_ALL, H5S_ALL, H5P_DEFAULT, data), "cannot be written");
}

void Object::write_slab(hid_t memory_type, const std::vector<hsize_t>& start, const std::vector<hsize_t>& count,
                        const void* data) const {
  const Handle file_space = slab_space(start, count);
  const Handle memory_space =
      own(H5Screate_simple(static_cast<int>(count.size()), count.data(), nullptr), &H5Sclose, "no space");
  require(H5Dwrite(id(), memory_type, memory_space.get(), file_space.get(), H5P_DEFAULT, data), "cannot be written");
}

std::string Object::read_string() const {
  if (!dims().empty()) fail("must be one string, not an array");
  const auto read = [](hid_t object, hid_t type, void* out) {
    return H5Dread(object, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, out);
  };
  return read_string_value(type().get(), file_, where(), read, id());
}

void Object::flush() const { require(H5Fflush(id(), H5F_SCOPE_GLOBAL), "cannot be flushed"); }

std::uint64_t Object::size() const {
  hsize_t size = 0;
  require(H5Fget_filesize(id(), &size), "has no size");
  return size;
}

void Object::close() { require(handle_.close(), "cannot be closed"); }

}  // namespace kvbench::trace::h5
