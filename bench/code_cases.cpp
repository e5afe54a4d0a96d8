// SPDX-License-Identifier: Apache-2.0
#include "case_tools.hpp"

namespace kvbench::bench {

namespace {

using namespace kernels;

constexpr Index kDims = 128;

GroupScales<Buffer> scales_of(Backend& b, const GroupFormat& format, const Buffer<const float>& rows) {
  const auto each = [&] { return b.allocate<float>(format.scale_rows(kTokens), format.scale_cols(kDims)); };
  return {rows, format, each(), each(), each(), each(), each()};
}

/// Equally spaced levels, where the format has a codebook.
Buffer<const float> equally_spaced(Backend& b, const GroupFormat& format, Index count) {
  if (format.grid != Grid::codebook) return {};
  std::vector<float> values;
  for (Index k = 0; k < count; ++k) values.push_back((static_cast<float>(k) - static_cast<float>(count) / 2) / 64);
  return b.adopt(std::move(values), count);
}

EncodeGroups<Buffer> codes_of(Backend& b, const GroupScales<Buffer>& scales) {
  const GroupFormat& format = scales.format;
  return {scales.rows,
          format,
          scales.scale,
          scales.inverse,
          scales.offset,
          equally_spaced(b, format, (Index{1} << format.bits) - 1),
          b.allocate<std::uint8_t>(kTokens, kDims)};
}

DecodeGroups<Buffer> rows_of(Backend& b, const EncodeGroups<Buffer>& encode) {
  const GroupFormat& format = encode.format;
  return {encode.codes,
          format,
          encode.scale,
          encode.offset,
          equally_spaced(b, format, Index{1} << format.bits),
          b.allocate<float>(kTokens, kDims)};
}

Case group_scales(std::string name, const GroupFormat& format) {
  return {"group_scales " + name, [=](Backend& b) {
            const auto op = scales_of(b, format, normal(b, kTokens, kDims, 1));
            return Bound{runner(b, op), reader(b, op.scale, op.inverse, op.offset, op.stored_scale)};
          }};
}

Case encode_groups(std::string name, const GroupFormat& format) {
  return {"encode_groups " + name, [=](Backend& b) {
            const auto scales = scales_of(b, format, normal(b, kTokens, kDims, 1));
            b.run(scales);
            const auto op = codes_of(b, scales);
            return Bound{runner(b, op), reader(b, op.codes)};
          }};
}

Case decode_groups(std::string name, const GroupFormat& format) {
  return {"decode_groups " + name, [=](Backend& b) {
            const auto scales = scales_of(b, format, normal(b, kTokens, kDims, 1));
            const auto encode = codes_of(b, scales);
            b.run(scales), b.run(encode);
            const auto op = rows_of(b, encode);
            return Bound{runner(b, op), reader(b, op.out)};
          }};
}

/// What a quantiser does to the keys of a head: scales, codes, and the rows that attention reads; where the format has
/// a codebook, between a rotation and its inverse.
Case round_trip(std::string name, const GroupFormat& format) {
  return {"round_trip " + name, [=](Backend& b) {
            const bool rotated = format.grid == Grid::codebook;
            const auto rows = normal(b, kTokens, kDims, 1), matrix = normal(b, kDims, kDims, 2);
            const ProjectRows<Buffer> turn{rows, matrix, b.allocate<float>(kTokens, kDims)};
            const auto scales = scales_of(b, format, rotated ? turn.out : rows);
            const auto encode = codes_of(b, scales);
            const auto decode = rows_of(b, encode);
            const ProjectRows<Buffer> back{decode.out, matrix, b.allocate<float>(kTokens, kDims)};
            const auto run = [=, &b] {
              if (rotated) b.run(turn);
              b.run(scales), b.run(encode), b.run(decode);
              if (rotated) b.run(back);
            };
            return Bound{run, reader(b, rotated ? back.out : decode.out)};
          }};
}

Case hadamard_rows(Index block) {
  return {"hadamard_rows block=" + std::to_string(block), [=](Backend& b) {
            const HadamardRows<Buffer> op{normal(b, kTokens, kDims, 1), block, b.allocate<float>(kTokens, kDims)};
            return Bound{runner(b, op), reader(b, op.out)};
          }};
}

Case project_rows(Index m) {
  return {"project_rows m=" + std::to_string(m), [=](Backend& b) {
            const ProjectRows<Buffer> op{normal(b, kTokens, kDims, 1), normal(b, m, kDims, 2),
                                         b.allocate<float>(kTokens, m)};
            return Bound{runner(b, op), reader(b, op.out)};
          }};
}

}  // namespace

std::vector<Case> code_cases() {
  const GroupFormat tokens{.axis = Axis::tokens};
  const GroupFormat codebook{.group = kDims, .scale = Scale::norm, .grid = Grid::codebook, .unit_norm = true};
  const std::pair<const char*, GroupFormat> formats[] = {{"int4", {}},
                                                         {"int4 tokens", tokens},
                                                         {"q4_0",
                                                          {.scale = Scale::extreme,
                                                           .peak = 8,
                                                           .quotient = GroupFormat::Quotient::inverse,
                                                           .zero = 8,
                                                           .rounding = Rounding::half_up}},
                                                         {"nvfp4",
                                                          {.group = 16,
                                                           .scale = Scale::largest,
                                                           .peak = 6,
                                                           .stored = Stored::e4m3,
                                                           .unit = 1.0f / 512,
                                                           .grid = Grid::minifloat,
                                                           .exponent_bits = 2,
                                                           .mantissa_bits = 1,
                                                           .largest = 6}},
                                                         {"codebook", codebook}};
  std::vector<Case> cases;
  for (const auto& [name, format] : formats) {
    cases.push_back(group_scales(name, format));
    cases.push_back(encode_groups(name, format));
    cases.push_back(decode_groups(name, format));
  }
  cases.push_back(round_trip("int4", {}));
  cases.push_back(round_trip("kivi4 keys", tokens));
  cases.push_back(round_trip("turboquant", codebook));
  cases.push_back(hadamard_rows(kDims));
  cases.push_back(project_rows(kDims));
  return cases;
}

}  // namespace kvbench::bench
