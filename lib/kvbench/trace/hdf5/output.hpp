// SPDX-License-Identifier: Apache-2.0
// Results as HDF5 files.
#pragma once

#include <functional>

#include <kvbench/core/atomic_file.hpp>
#include <kvbench/kernels/view.hpp>
#include <kvbench/trace/hdf5/object.hpp>

namespace kvbench::trace::h5 {

/// Creates the file with these contents, and publishes it. Throws IoError.
void write_file(AtomicFile& file, const std::function<void(const Object& root)>& fill);

/// IEEE single or double, or an integer of this size.
template <class T>
hid_t stored_type() {
  if constexpr (std::is_floating_point_v<T>) return sizeof(T) == 4 ? H5T_IEEE_F32LE : H5T_IEEE_F64LE;
  return sizeof(T) == 1 ? H5T_STD_U8LE : sizeof(T) == 4 ? H5T_STD_I32LE : H5T_STD_I64LE;
}

/// A dataset of these values, row-major; none where there is no value.
template <class Values>
void write(const Object& group, const char* name, const Values& values, const std::vector<Index>& dims) {
  using T = std::remove_cvref_t<decltype(*values.data())>;
  if (values.empty()) return;
  Object dataset = group.create_dataset(name, stored_type<T>(), {dims.begin(), dims.end()}, {});
  dataset.write(stored_type<T>(), values.data());
  dataset.close();
}

}  // namespace kvbench::trace::h5
