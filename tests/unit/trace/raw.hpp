// SPDX-License-Identifier: Apache-2.0
// Changes traces that Writer made through the HDF5 C API.
#pragma once

#include <string>
#include <vector>

#include <hdf5.h>

namespace kvbench::trace::test {

/// A file opened for changes; it and its objects are closed at the end of the scope.
class RawFile {
 public:
  explicit RawFile(const std::string& path) : id_(H5Fopen(path.c_str(), H5F_ACC_RDWR, access())) {}
  ~RawFile() { H5Fclose(id_); }
  RawFile(const RawFile&) = delete;
  RawFile& operator=(const RawFile&) = delete;
  hid_t id() const { return id_; }

  void remove(const char* path) { H5Ldelete(id_, path, H5P_DEFAULT); }
  void remove_attribute(const char* object, const char* name) { H5Adelete_by_name(id_, object, name, H5P_DEFAULT); }

  void set(const char* object, const char* name, hid_t type, const void* value, std::vector<hsize_t> dims = {}) {
    const hid_t at = H5Oopen(id_, object, H5P_DEFAULT);
    if (H5Aexists(at, name) > 0) H5Adelete(at, name);
    const hid_t space = space_of(dims);
    const hid_t attribute = H5Acreate2(at, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
    H5Awrite(attribute, type, value);
    H5Aclose(attribute);
    H5Sclose(space);
    H5Oclose(at);
  }
  void set(const char* object, const char* name, std::int64_t value) { set(object, name, H5T_STD_I64LE, &value); }
  void set(const char* object, const char* name, double value) { set(object, name, H5T_IEEE_F64LE, &value); }
  /// Fixed length, as h5py writes bytes.
  void set(const char* object, const char* name, const std::string& value) {
    const hid_t type = H5Tcopy(H5T_C_S1);
    H5Tset_size(type, value.size());
    H5Tset_strpad(type, H5T_STR_NULLPAD);
    set(object, name, type, value.data());
    H5Tclose(type);
  }

  /// Replaces a dataset. With null `data` nothing is written, and HDF5 allocates no storage.
  void replace(const char* path, hid_t type, std::vector<hsize_t> dims, const void* data,
               hid_t creation = H5P_DEFAULT) {
    if (H5Lexists(id_, path, H5P_DEFAULT) > 0) remove(path);
    const hid_t space = space_of(dims);
    const hid_t dataset = H5Dcreate2(id_, path, type, space, H5P_DEFAULT, creation, H5P_DEFAULT);
    if (data != nullptr) H5Dwrite(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, data);
    H5Dclose(dataset);
    H5Sclose(space);
  }

 private:
  static hid_t access() {
    static const hid_t properties = [] {
      const hid_t made = H5Pcreate(H5P_FILE_ACCESS);
      H5Pset_fclose_degree(made, H5F_CLOSE_STRONG);
      return made;
    }();
    return properties;
  }
  static hid_t space_of(const std::vector<hsize_t>& dims) {
    return dims.empty() ? H5Screate(H5S_SCALAR) : H5Screate_simple(static_cast<int>(dims.size()), dims.data(), nullptr);
  }
  hid_t id_;
};

}  // namespace kvbench::trace::test
