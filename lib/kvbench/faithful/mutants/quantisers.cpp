// SPDX-License-Identifier: Apache-2.0
#include <kvbench/faithful/mutants/mutant.hpp>

#include <algorithm>
#include <cmath>
#include <numbers>

#include <kvbench/faithful/checks/checks.hpp>
#include <kvbench/methods/quantisation/group_codec.hpp>
#include <kvbench/methods/stages/draws.hpp>

namespace kvbench::faithful {
namespace {

/// a + factor (b - a), number by number.
std::vector<float> moved_from(const std::vector<float>& a, const std::vector<float>& b, double factor) {
  std::vector<float> out;
  for (std::size_t i = 0; i < a.size(); ++i) out.push_back(static_cast<float>(a[i] + factor * (double{b[i]} - a[i])));
  return out;
}

Mutant sketch_mutant(std::string id, const std::string& fault, SketchedKeys (*make)(const bounds::Subject&, Backend&)) {
  return {.id = std::move(id),
          .method = "turboquant",
          .fault = fault,
          .place = "QJL, definition 3.1: sqrt(pi / 2) / m |x| <S q, sign(S x)>",
          .run = [make](bounds::CheckContext& context) {
            bounds::CheckContext check = context.as("qjl.unbiased");
            SketchedKeys keys = make(*context.subject, context.backend);
            keys.same_bits = {};
            const SketchedKeys right = keys;
            keys.estimated = [right](const std::vector<float>& rows, std::uint32_t seed) {
              return moved_from(right.rounded(rows, seed), right.estimated(rows, seed),
                                1 / std::sqrt(std::numbers::pi / 2));
            };
            check_sketched_products(check, keys);
          }};
}

/// turboquant's rounding by its parts, with the codebook for `dimension` channels and rotations times `factor`.
KeyDecoder rounded_by_parts(const bounds::Subject& subject, int bits, Index dimension, double factor,
                            Backend& backend) {
  return [&subject, &backend, bits, dimension, factor](const std::vector<float>& keys, std::uint32_t seed) {
    const Index d = subject.d();
    const methods::Draws draws(seed, "turboquant", subject.head);
    const methods::MatrixPair turn =
        methods::matrix_pair(methods::orthonormal_matrix(draws, 0, d, d), d, d, factor, backend);
    const methods::GroupCodec codec(
        {.format = {.group = d, .scale = kernels::Scale::norm, .grid = kernels::Grid::codebook, .bits = bits},
         .codebook = methods::sphere_codebook(dimension, bits),
         .encode_with_stored = false});
    const auto rows = backend.adopt(keys, static_cast<Index>(keys.size()) / d, d);
    const auto coded = codec.decoded(methods::projected(rows, turn.matrix, backend), backend);
    return backend.read(methods::projected(coded, turn.transpose, backend));
  };
}

Mutant distortion_mutant(std::string id, std::string fault, Index dimensions, double factor) {
  return {.id = std::move(id),
          .method = "turboquant",
          .fault = std::move(fault),
          .place = "TurboQuant, algorithm 1, lines 2 and 3",
          .run = [dimensions, factor](bounds::CheckContext& context) {
            bounds::CheckContext check = context.as("turboquant.distortion");
            const bounds::Subject& subject = *context.subject;
            check_distortion(check, [&](int bits) {
              return rounded_by_parts(subject, bits, dimensions * subject.d(), factor, context.backend);
            });
          }};
}

Mutant rotation_mutant(std::string id, std::string fault, Rotation (*make)(const bounds::Subject&, Backend&),
                       double (*factor)(Index d)) {
  return {.id = std::move(id),
          .method = "turboquant",
          .fault = std::move(fault),
          .place = "TurboQuant, algorithm 1, line 2; the Sylvester matrix / sqrt(block)",
          .run = [make, factor](bounds::CheckContext& context) {
            bounds::CheckContext check = context.as("rotation.products");
            Rotation rotation = make(*context.subject, context.backend);
            rotation.turned = [right = rotation.turned, by = factor(context.subject->d())](
                                  const std::vector<float>& rows, std::uint32_t seed) {
              return moved_from(std::vector<float>(rows.size()), right(rows, seed), by);
            };
            check_rotation(check, rotation);
          }};
}

struct StepFault {
  int more_steps = 0;  ///< 1: the range is divided by 2^bits
  bool down = false;   ///< codes are rounded down
};

std::vector<float> rounded_with(const StepFault& fault, const StepFormat& format, const std::vector<float>& rows,
                                Index d, Side side) {
  std::vector<float> out(rows.size());
  const double most = (1 << format.bits) - 1;
  for_each_step_group(format, side, static_cast<Index>(rows.size()) / d, d, [&](const std::vector<std::size_t>& at) {
    double low = INFINITY, high = -INFINITY;
    for (const std::size_t i : at) low = std::min(low, double{rows[i]}), high = std::max(high, double{rows[i]});
    const double step = (high - low) / (most + fault.more_steps);
    for (const std::size_t i : at) {
      const double y = step > 0 ? (rows[i] - low) / step : 0;
      out[i] = static_cast<float>(low + step * std::min(most, fault.down ? std::floor(y) : std::nearbyint(y)));
    }
  });
  return out;
}

Mutant step_mutant(std::string id, std::string fault, StepFault planted) {
  return {.id = std::move(id),
          .method = "int",
          .fault = std::move(fault),
          .place = "s = (max - min) / (2^bits - 1), codes to nearest",
          .run = [planted](bounds::CheckContext& context) {
            bounds::CheckContext check = context.as("quantiser.half_step");
            check_half_step(check, [&](const StepFormat& format, Side side, const std::vector<float>& rows, Backend&) {
              const bounds::Subject& subject = *context.subject;
              return rounded_with(planted, format, rows, side == Side::keys ? subject.d() : subject.dv(), side);
            });
          }};
}

}  // namespace

std::vector<Mutant> quantiser_mutants() {
  return {
      sketch_mutant("qjl.factor", "the estimate from signs lacks the factor sqrt(pi / 2)", sketch_alone),
      sketch_mutant("turboquant.residual-factor", "the estimate of the residual lacks the factor sqrt(pi / 2)",
                    turboquant_keys),
      distortion_mutant("turboquant.codebook", "the codebook is that of vectors with 4 times as many channels", 4, 1),
      distortion_mutant("turboquant.rotation-factor", "rotated rows are twice as long, and so are those turned back", 1,
                        2),
      rotation_mutant("turboquant.rotation-length", "the rows of the random rotation have the length 1.001",
                      random_rotation, [](Index) { return 1.001; }),
      rotation_mutant("hadamard.normalisation", "the Hadamard matrix is not divided by sqrt(block)", hadamard_rotation,
                      [](Index d) { return std::sqrt(static_cast<double>(d & -d)); }),
      step_mutant("int.step", "the range of a group is divided by 2^bits instead of 2^bits - 1", {.more_steps = 1}),
      step_mutant("int.down", "codes are rounded down instead of to nearest", {.down = true}),
  };
}

}  // namespace kvbench::faithful
