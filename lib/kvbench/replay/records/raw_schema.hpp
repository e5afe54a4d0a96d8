// SPDX-License-Identifier: Apache-2.0
// Functions shared by the readers of the schema kvbench_raw (docs/results.md).
#pragma once

#include <string>
#include <vector>

#include <kvbench/core/error.hpp>
#include <kvbench/kernels/view.hpp>
#include <kvbench/trace/hdf5.hpp>

namespace kvbench::raw {

using trace::h5::Object;

/// A dataset of numbers and its shape.
template <class T>
struct Numbers {
  std::vector<Index> dims;
  std::vector<T> values;
};

/// The dataset `name` of a group; empty where there is none. `length` of the file in bytes limits the size of a dataset:
/// nothing is allocated for a size that the file cannot hold, compressed or not.
template <class T>
Numbers<T> read_numbers(const Object& group, const char* name, std::uint64_t length) {
  constexpr double compression = 1100;  // deflate reaches 1032
  if (!group.has(name)) return {};
  const Object dataset = group.dataset(name);
  Numbers<T> out;
  double count = 1;
  for (const hsize_t size : dataset.dims()) {
    out.dims.push_back(static_cast<Index>(size));
    count *= static_cast<double>(size);
  }
  if (count > compression * static_cast<double>(length)) {
    throw Error("{} claims {} numbers, more than the file can hold; the file is damaged, write it again.", dataset.where(),
                count);
  }
  out.values.resize(static_cast<std::size_t>(count));
  if (!out.values.empty()) {
    dataset.read(std::is_same_v<T, float> ? H5T_NATIVE_FLOAT : H5T_NATIVE_INT32, out.values.data());
  }
  return out;
}

inline std::int64_t integer_of(const Object& object, const char* name, std::int64_t otherwise) {
  return object.integer(name).value_or(otherwise);
}

/// Throws Error, naming the object and the fault, where `holds` is false.
void require(bool holds, const Object& where, const std::string& fault);

/// Throws Error where the file has another schema, or a version that this program does not read. `holds`: the expected content,
/// such as "kept entries".
void check_schema(const Object& root, const std::string& path, const char* holds);

/// Runs `work` in an HDF5 session; failures of the library become Errors.
template <class F>
auto in_session(const char* holds, F work) {
  const trace::h5::Session session;
  try {
    return work();
  } catch (const trace::h5::Failure& failure) {
    throw Error("{}. The file is damaged, or does not hold {}; see docs/results.md.", failure.what(), holds);
  }
}

}  // namespace kvbench::raw
