// SPDX-License-Identifier: Apache-2.0
// Path and shape of each array of a trace, for reader, writer and generator.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include <kvbench/kernels/half.hpp>
#include <kvbench/trace/schema.hpp>

namespace kvbench::trace {

inline constexpr std::array all_arrays{Array::keys,
                                       Array::values,
                                       Array::queries,
                                       Array::column_sums,
                                       Array::keys_pre_rope,
                                       Array::queries_pre_rope,
                                       Array::speculated_queries,
                                       Array::attention_output,
                                       Array::residual_norm,
                                       Array::output_sketch,
                                       Array::probes,
                                       Array::probe_scales};

/// [heads, rows, dim] in memory; slab.hpp has the dimensions in the file.
struct Shape {
  std::int64_t heads = 0, rows = 0, dim = 0;
};

Shape shape_of(const TraceInfo& info, const PromptInfo& prompt, const LayerInfo& layer, Array array);
Dtype dtype_of(const TraceInfo& info, Array array);
inline std::size_t size_of(Dtype dtype) { return dtype == Dtype::f32 ? 4 : dtype == Dtype::i8 ? 1 : 2; }
bool holds(const LayerInfo& layer, Array array);

/// Converts a value to a 16-bit type and back.
inline std::uint16_t narrow(float value, Dtype dtype) {
  return dtype == Dtype::f16 ? narrow_f16(value) : narrow_bf16(value);
}
inline float widen(std::uint16_t half, Dtype dtype) { return dtype == Dtype::f16 ? widen_f16(half) : widen_bf16(half); }
/// Below it, a 16-bit type rounds numbers more coarsely than bf16 rounds any that is not tiny itself.
inline float coarse_below(Dtype dtype) { return dtype == Dtype::f16 ? 0x1p-17F : 0x1p-126F; }

std::string path_of(const PromptInfo& prompt);
std::string path_of(const PromptInfo& prompt, const LayerInfo& layer);
std::string path_of(const PromptInfo& prompt, const LayerInfo& layer, Array array);

/// Throws Error with `file` and the object where `info` is inconsistent or violates the schema. Reads no dataset.
void check(const TraceInfo& info, const std::string& file);
/// Whether a span may have this name: 1 to longest_span_name bytes, and no comma.
bool may_name_a_span(std::string_view name);

}  // namespace kvbench::trace
