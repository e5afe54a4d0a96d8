// SPDX-License-Identifier: Apache-2.0
#include <kvbench/trace/hdf5/object.hpp>

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

Handle fixed_string(std::size_t bytes) {
  Handle type(H5Tcopy(H5T_C_S1), &H5Tclose);
  H5Tset_size(type.get(), std::max<std::size_t>(1, bytes));
  H5Tset_strpad(type.get(), H5T_STR_NULLPAD);
  H5Tset_cset(type.get(), H5T_CSET_UTF8);
  return type;
}

void Object::fail(const std::string& doing) const {
  const std::string reason = innermost_reason();
  throw Failure(fmt::format("{}: {}{}{}{}", where(), doing, reason.empty() ? "" : " (", shorten(reason),
                            reason.empty() ? "" : ")"));
}

Object Object::open_file(const std::string& path) {
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
  return file;
}

Object Object::create_file(const std::string& path, const std::string& final_name, H5F_libver_t format, bool aligned) {
  Object file({}, final_name, "/");
  const Handle access = file.own(H5Pcreate(H5P_FILE_ACCESS), &H5Pclose, "cannot set up");
  if (aligned) H5Pset_alignment(access.get(), 4096, 4096);
  H5Pset_libver_bounds(access.get(), format, H5F_LIBVER_V110);
  H5Pset_fclose_degree(access.get(), H5F_CLOSE_STRONG);
  const Handle creation = creation_properties(H5P_FILE_CREATE);
  file.handle_ = file.own(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, creation.get(), access.get()), &H5Fclose,
                          "cannot create the file");
  return file;
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
  found.handle_ = found.own(H5Oopen(id(), member.c_str(), H5P_DEFAULT), &H5Oclose, "cannot open");
  if (H5Iget_type(found.id()) != kind) found.fail(fmt::format("is not a {}", kind_name));
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

Handle Object::slab_space(const std::vector<hsize_t>& start, const std::vector<hsize_t>& count) const {
  Handle space = own(H5Dget_space(id()), &H5Sclose, "cannot read the shape");
  require(H5Sselect_hyperslab(space.get(), H5S_SELECT_SET, start.data(), nullptr, count.data(), nullptr),
          "cannot select rows");
  return space;
}

void Object::set(const char* name, hid_t type, const void* value) const {
  const std::string doing = fmt::format("attribute '{}' cannot be written", name);
  const Handle space(H5Screate(H5S_SCALAR), &H5Sclose);
  Handle made = own(H5Acreate2(id(), name, type, space.get(), H5P_DEFAULT, H5P_DEFAULT), &H5Aclose, doing);
  require(H5Awrite(made.get(), type, value), doing);
  require(made.close(), doing);
}

void Object::set(const char* name, std::int64_t value) const { set(name, H5T_STD_I64LE, &value); }
void Object::set(const char* name, double value) const { set(name, H5T_IEEE_F64LE, &value); }

// Fixed length: the text is then part of the metadata, which have checksums. The heap of strings of variable length has
// none.
void Object::set(const char* name, const std::string& value) const {
  set(name, fixed_string(value.size()).get(), value.c_str());
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

void Object::read_slab(hid_t memory_type, const std::vector<hsize_t>& start, const std::vector<hsize_t>& count,
                       void* out) const {
  const Handle file_space = slab_space(start, count);
  const Handle memory_space =
      own(H5Screate_simple(static_cast<int>(count.size()), count.data(), nullptr), &H5Sclose, "no space");
  require(H5Dread(id(), memory_type, memory_space.get(), file_space.get(), H5P_DEFAULT, out), "cannot be read");
}

void Object::flush() const { require(H5Fflush(id(), H5F_SCOPE_GLOBAL), "cannot be flushed"); }

std::uint64_t Object::size() const {
  hsize_t size = 0;
  require(H5Fget_filesize(id(), &size), "has no size");
  return size;
}

void Object::close() { require(handle_.close(), "cannot be closed"); }

}  // namespace kvbench::trace::h5
