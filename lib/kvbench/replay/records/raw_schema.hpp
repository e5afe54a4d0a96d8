// SPDX-License-Identifier: Apache-2.0
// Functions shared by the readers of the schema kvbench_raw (docs/results.md).
#pragma once

#include <string>
#include <type_traits>
#include <vector>

#include <kvbench/core/error.hpp>
#include <kvbench/kernels/view.hpp>
#include <kvbench/trace/guard/input_object.hpp>

namespace kvbench::replay::raw {

using trace::h5::InputObject;

/// Throws Error, naming the object and the fault, where `holds` is false.
void require(bool holds, const InputObject& where, const std::string& fault);

/// A dataset of numbers and its shape.
template <class T>
struct Numbers {
  std::vector<Index> dims;
  std::vector<T> values;
};

/// The dataset `name` of a group; empty where there is none. Throws Error where it does not hold integers (T =
/// std::int32_t) or numbers (T = float).
template <class T>
Numbers<T> read_numbers(const InputObject& group, const char* name) {
  if (!group.has(name)) return {};
  const InputObject dataset = group.dataset(name);
  Numbers<T> out;
  std::size_t count = 1;
  for (const hsize_t size : dataset.dims()) {
    out.dims.push_back(static_cast<Index>(size));
    count *= static_cast<std::size_t>(size);
  }
  if constexpr (std::is_same_v<T, float>) {
    const H5T_class_t kind = H5Tget_class(dataset.type().get());
    require(kind == H5T_FLOAT || kind == H5T_INTEGER, dataset, "it must hold numbers");
    out.values.resize(count);
    if (count > 0) dataset.read(H5T_NATIVE_FLOAT, out.values.data());
  } else {
    out.values = dataset.integers<T>();
  }
  return out;
}

inline std::int64_t integer_of(const InputObject& object, const char* name, std::int64_t otherwise) {
  return object.integer(name).value_or(otherwise);
}

/// Throws Error where the file has another schema, or a version that this program does not read. `holds`: the expected
/// content, such as "kept entries".
void check_schema(const InputObject& root, const std::string& path, const char* holds);

}  // namespace kvbench::replay::raw
