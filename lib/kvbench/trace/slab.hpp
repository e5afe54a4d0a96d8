// SPDX-License-Identifier: Apache-2.0
// Where the rows of a head lie in the dataset of an array.
#pragma once

#include <algorithm>
#include <vector>

#include <hdf5.h>

#include <kvbench/trace/layout.hpp>

namespace kvbench::trace {

/// Dimensions of the dataset of an array: [heads, rows, dim]; without dim where it is 1, without heads for residual
/// norms, and with [R, T] as the rows of probes.
inline std::vector<hsize_t> dims_of(const TraceInfo& info, const PromptInfo& prompt, const LayerInfo& layer,
                                    Array array) {
  const Shape shape = shape_of(info, prompt, layer, array);
  const auto heads = static_cast<hsize_t>(shape.heads), rows = static_cast<hsize_t>(shape.rows);
  const auto dim = static_cast<hsize_t>(shape.dim);
  if (array == Array::residual_norm) return {rows};
  if (array == Array::column_sums) return {heads, rows};
  if (array != Array::probes && array != Array::probe_scales) return {heads, rows, dim};
  const Probes probes = prompt.probes.value_or(Probes{});
  std::vector<hsize_t> dims{heads, static_cast<hsize_t>(probes.count), static_cast<hsize_t>(probes.tokens)};
  if (array == Array::probes) dims.push_back(dim);
  return dims;
}

/// Whether a slab of the dataset can have these rows: rows of probes are written T at a time.
inline bool is_slab(const std::vector<hsize_t>& dims, const Shape& shape, std::int64_t begin, std::int64_t rows) {
  const auto unit = dims.size() < 2 ? 1 : std::max<std::int64_t>(1, shape.rows / static_cast<std::int64_t>(dims[1]));
  return begin % unit == 0 && rows % unit == 0;
}

/// A hyperslab of a dataset.
struct Slab {
  std::vector<hsize_t> start, count;
};

/// Rows [begin, begin + rows) of a head, for which is_slab() holds.
inline Slab slab_of(const std::vector<hsize_t>& dims, const Shape& shape, std::int64_t head, std::int64_t begin,
                    std::int64_t rows) {
  Slab slab{std::vector<hsize_t>(dims.size()), dims};
  const std::size_t at = dims.size() < 2 ? 0 : 1;  // the dimension of the rows
  const auto unit = static_cast<hsize_t>(shape.rows) / dims[at];
  slab.start[at] = static_cast<hsize_t>(begin) / unit;
  slab.count[at] = static_cast<hsize_t>(rows) / unit;
  if (at == 1) slab.start[0] = static_cast<hsize_t>(head), slab.count[0] = 1;
  return slab;
}

}  // namespace kvbench::trace
