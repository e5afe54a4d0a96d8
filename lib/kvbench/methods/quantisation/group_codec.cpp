// SPDX-License-Identifier: Apache-2.0
#include <kvbench/methods/quantisation/group_codec.hpp>

#include <algorithm>

namespace kvbench::methods {
namespace {

Buffer<const float> rotated(const Buffer<const float>& rows, Index block, Backend& backend) {
  if (block == 0) return rows;
  const auto out = backend.allocate<float>(rows.rows(), rows.cols());
  backend.run(kernels::HadamardRows<Buffer>{.rows = rows, .block = block, .out = out});
  return out;
}

Element element_of(kernels::Stored stored) {
  switch (stored) {
    case kernels::Stored::f32:
      return Element::f32;
    case kernels::Stored::f16:
    case kernels::Stored::bf16:  // of as many bytes
      return Element::f16;
    case kernels::Stored::e4m3:
      return Element::u8;
  }
  return Element::f32;
}

/// The rows that are encoded where each step encodes those that waited before it.
Index encoded_in_batches(Index context, Index held, Index batch) {
  const Index of_prompt = std::min(context, held) / batch * batch;
  return held <= context ? of_prompt : std::max(of_prompt, (held - 1) / batch * batch);
}

/// A column of numbers on the device.
Buffer<const float> column(const std::vector<float>& numbers, Backend& backend) {
  return backend.adopt(numbers, static_cast<Index>(numbers.size()));
}

}  // namespace

GroupScaleArrays scales_of(const Buffer<const float>& rows, const kernels::GroupFormat& format, Backend& backend) {
  const auto array = [&] {
    return backend.allocate<float>(format.scale_rows(rows.rows()), format.scale_cols(rows.cols()));
  };
  const GroupScaleArrays out{array(), array(), array(), array(), array()};
  backend.run(kernels::GroupScales<Buffer>{.rows = rows,
                                           .format = format,
                                           .scale = out.scale,
                                           .inverse = out.inverse,
                                           .offset = out.offset,
                                           .stored_scale = out.stored_scale,
                                           .stored_offset = out.stored_offset});
  return out;
}

Buffer<float> recoded(const Buffer<const float>& rows, const kernels::GroupFormat& format, const CodeScales& scales,
                      Backend& backend) {
  const Index n = rows.rows(), d = rows.cols();
  const auto codes = backend.allocate<std::uint8_t>(n, d);
  const bool listed = format.grid == kernels::Grid::codebook;
  backend.run(kernels::EncodeGroups<Buffer>{
      .rows = rows,
      .format = format,
      .scale = scales.scale,
      .inverse = scales.inverse,
      .offset = scales.offset,
      .midpoints = listed ? column(scales.book->midpoints, backend) : Buffer<const float>(),
      .codes = codes});
  const Buffer<const float> levels = scales.book ? column(scales.book->levels, backend) : Buffer<const float>();
  Buffer<const float> scale = scales.stored_scale;
  if (!scale.present()) {
    const auto fitted = backend.allocate<float>(format.scale_rows(n), format.scale_cols(d));
    backend.run(kernels::FitScales<Buffer>{
        .rows = rows, .format = format, .codes = codes, .levels = levels, .stored_scale = fitted});
    scale = fitted;
  }
  const auto out = backend.allocate<float>(n, d);
  backend.run(kernels::DecodeGroups<Buffer>{.codes = codes,
                                            .format = format,
                                            .scale = scale,
                                            .offset = scales.stored_offset,
                                            .levels = listed ? levels : Buffer<const float>(),
                                            .out = out});
  return out;
}

Index GroupCodec::encoded(Index context, Index held) const {
  switch (settings_.residual) {
    case Residual::none:
      return held;
    case Residual::batches:
      return encoded_in_batches(context, held, settings_.waiting);
    case Residual::window:
      // The step's own row waits beside the R others until its queries are answered.
      return std::max<Index>(0, held - settings_.waiting - (held > context ? 1 : 0));
  }
  return held;
}

Buffer<const float> GroupCodec::decoded(const Buffer<const float>& rows, Backend& backend) const {
  const kernels::GroupFormat& format = settings_.format;
  const Buffer<const float> turned = rotated(rows, settings_.hadamard, backend);
  const GroupScaleArrays scales = scales_of(turned, format, backend);
  const bool stored = settings_.encode_with_stored;
  const Buffer<const float> out =
      recoded(turned, format,
              {.scale = stored ? scales.stored_scale : scales.scale,
               .inverse = scales.inverse,
               .offset = stored ? scales.stored_offset : scales.offset,
               .stored_scale = settings_.fitted ? Buffer<const float>() : scales.stored_scale,
               .stored_offset = scales.stored_offset,
               .book = settings_.codebook.get()},
              backend);
  return rotated(out, settings_.hadamard, backend);
}

Footprint GroupCodec::footprint(Index rows, Index cols) const {
  const kernels::GroupFormat& format = settings_.format;
  const Index r = format.scale_rows(rows), c = format.scale_cols(cols);
  Footprint arrays = {{.name = "codes", .element = packed(format.bits), .rows = rows, .cols = cols},
                      {.name = "scales", .element = element_of(format.stored), .rows = r, .cols = c}};
  // Scale::zero_point has its few bits among those of the scale.
  if (format.scale == kernels::Scale::range || format.scale == kernels::Scale::edge)
    arrays.push_back({.name = "minima", .element = element_of(format.stored), .rows = r, .cols = c});
  if (settings_.sums) arrays.push_back({.name = "sums", .element = Element::i32, .rows = r, .cols = c});
  return arrays;
}

}  // namespace kvbench::methods
