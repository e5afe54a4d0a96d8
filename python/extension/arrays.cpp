// SPDX-License-Identifier: Apache-2.0
#include <python/extension/arrays.hpp>

#include <algorithm>
#include <new>
#include <numeric>
#include <span>

#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

namespace kvbench::python {
namespace {

/// A read-only array with a copy of these numbers: PyTorch writes to read-only arrays too, and what a method does to
/// its arrays must reach no other row. Their alignment is always the same, because sums of NumPy may depend on it.
template <class T>
nb::object array(std::span<const T> numbers, std::vector<std::size_t> shape) {
  constexpr std::align_val_t alignment{64};
  void* const memory = ::operator new(numbers.size_bytes(), alignment);
  const nb::capsule owner(memory, [](void* held) noexcept { ::operator delete(held, alignment); });
  std::ranges::copy(numbers, static_cast<T*>(memory));
  return nb::cast(nb::ndarray<nb::numpy, const T>(memory, shape.size(), shape.data(), owner));
}

/// A class of kvbench.methods.method, which is kept for ever.
nb::handle class_of(const char* name) {
  return nb::object(nb::module_::import_("kvbench.methods.method").attr(name)).release();
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
  return array<float>(own, {static_cast<std::size_t>(group), static_cast<std::size_t>(d)});
}

nb::object array_of(const Buffer<const float>& buffer, std::vector<std::size_t> shape, Backend& backend) {
  if (!buffer.present()) return nb::none();
  const HostView<float> numbers = backend.on_host(buffer);
  return array<float>({numbers.data(), numbers.size()}, std::move(shape));
}

}  // namespace

nb::object array_of(const Buffer<const float>& buffer, Backend& backend) {
  return array_of(buffer, {static_cast<std::size_t>(buffer.rows()), static_cast<std::size_t>(buffer.cols())}, backend);
}

nb::object positions_of(Index first, Index count) {
  std::vector<std::int64_t> numbers(static_cast<std::size_t>(count));
  std::iota(numbers.begin(), numbers.end(), first);
  return array<std::int64_t>(numbers, {numbers.size()});
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
  fields["observed_positions"] = array<std::int32_t>(head.observed_positions, {observed});
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
