// SPDX-License-Identifier: Apache-2.0
#include <python/extension/arrays.hpp>

#include <numeric>

#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

namespace kvbench::python {
namespace {

/// The array keeps `owner`, which holds its memory.
template <class T, class Owner>
nb::object array(const T* data, std::vector<std::size_t> shape, Owner owner) {
  auto* const held = new Owner(std::move(owner));
  const nb::capsule keeper(held, [](void* memory) noexcept { delete static_cast<Owner*>(memory); });
  return nb::cast(nb::ndarray<nb::numpy, const T>(data, shape.size(), shape.data(), keeper));
}

template <class T>
nb::object array(std::vector<T> values, std::vector<std::size_t> shape) {
  HostView<T> view(std::move(values));
  return array(view.data(), std::move(shape), view);
}

/// A class of kvbench.method, which is kept for ever.
nb::handle class_of(const char* name) {
  return nb::object(nb::module_::import_("kvbench.method").attr(name)).release();
}

nb::object rope_of(const std::optional<methods::Rope>& rope) {
  if (!rope) return nb::none();
  return class_of("Rope")(nb::arg("theta") = rope->theta, nb::arg("interleaved") = rope->interleaved);
}

/// Rows g*m + i of the query heads g, [G, d]; None where the buffer is absent.
nb::object rows_of_query(const Buffer<const float>& all, Index group, Index i, Backend& backend) {
  if (!all.present()) return nb::none();
  const HostView<float> rows = backend.on_host(all);
  const Index m = all.rows() / group, d = all.cols();
  std::vector<float> own;
  for (Index g = 0; g < group; ++g) {
    const float* const row = rows.begin() + (g * m + i) * d;
    own.insert(own.end(), row, row + d);
  }
  return array(std::move(own), {static_cast<std::size_t>(group), static_cast<std::size_t>(d)});
}

nb::object array_of(const Buffer<const float>& buffer, std::vector<std::size_t> shape, Backend& backend) {
  if (!buffer.present()) return nb::none();
  HostView<float> view = backend.on_host(buffer);
  const float* const data = view.data();
  return array(data, std::move(shape), std::move(view));
}

}  // namespace

nb::object array_of(const Buffer<const float>& buffer, Backend& backend) {
  return array_of(buffer, {static_cast<std::size_t>(buffer.rows()), static_cast<std::size_t>(buffer.cols())}, backend);
}

nb::object positions_of(Index first, Index count) {
  static nb::handle numbers = nb::none().release();  // 0, 1, ..., kept for ever
  if (numbers.is_none() || static_cast<Index>(nb::len(numbers)) < first + count) {
    std::vector<std::int64_t> more(static_cast<std::size_t>(2 * (first + count)));
    std::iota(more.begin(), more.end(), 0);
    numbers = array(more, {more.size()}).release();
  }
  return numbers[nb::slice(first, first + count)];
}

nb::object head_prompt(const methods::HeadPrompt& head, Backend& backend) {
  const auto group = static_cast<std::size_t>(head.group);
  const std::size_t observed = head.observed_positions.size();
  nb::dict fields;
  fields["prompt"] = head.prompt_group;
  fields["layer"] = head.layer.value;
  fields["kv_head"] = head.head.value;
  fields["num_layers"] = head.num_layers;
  fields["num_caches"] = head.num_caches;
  fields["depth"] = head.depth;
  fields["num_kv_heads"] = head.num_kv_heads;
  fields["group"] = head.group;
  fields["window"] = head.window;
  fields["scale"] = head.scale;
  fields["keys"] = array_of(head.keys, backend);
  fields["values"] = array_of(head.values, backend);
  fields["observed"] = array_of(head.observed, {group, observed, static_cast<std::size_t>(head.keys.cols())}, backend);
  fields["observed_positions"] = array(head.observed_positions, {observed});
  fields["fixed_log_sum_exp"] = array_of(head.fixed_log_sum_exp, {group, observed}, backend);
  fields["rope"] = rope_of(head.rope);
  fields["column_sums"] = array_of(head.column_sums, backend);
  fields["keys_pre_rope"] = array_of(head.keys_pre_rope, backend);
  fields["calibration_keys"] = array_of(head.calibration_keys, backend);
  fields["calibration"] = head.calibration ? head_prompt(*head.calibration, backend) : nb::none();
  return class_of("HeadPrompt")(**fields);
}

nb::object query_block(const methods::QueryBlock& block, Index group, Index i, Backend& backend) {
  static const nb::handle type = class_of("QueryBlock");
  const auto at = static_cast<std::size_t>(i);
  return type(rows_of_query(block.queries, group, i, backend), block.positions[at], backend.on_host(block.first)[at],
              backend.on_host(block.last)[at], rows_of_query(block.speculated, group, i, backend));
}

}  // namespace kvbench::python
