// SPDX-License-Identifier: Apache-2.0
// turboquant: rows rotated at random, then each coordinate rounded to the codebook of its known distribution.
// TurboQuant, Zandieh, Daliri, Hadian, Mirrokni, arXiv 2504.19874, algorithm 1; with qjl, algorithm 2 for keys.
//
// A row x stores |x| in f16 and the codes of the numbers of R x / |x|, with R a random orthogonal matrix. The codebook
// of 2^bits levels is that of Lloyd and Max for a coordinate of a random unit vector, whose density is proportional to
// (1 - t^2)^((d - 3) / 2): lloyd_max.hpp. x is decoded to |x| R^T level(codes).
// qjl=true: keys are decoded to y from one bit less; of the residual r = x - y are stored |r| in f16 and the signs of
// S r, with S of d rows of independent normal numbers: sign_sketch.hpp. <q, x> is estimated by
// <q, y> + sqrt(pi / 2) / d |r| <S q, sign(S r)>, whose mean over S is <q, x>.
// R and S come from the seed, by stages/draws.hpp, one each for every head, keys and values apart. They are drawn again
// instead of stored, and count no bytes.
//
// Parameters: bits, 0 (default) lets the budget choose from 4, 3, 2 and 1 (with qjl 4, 3 and 2); qjl (false).
// Complexity: O(n (d^2 + dv^2)). Memory: (bits + 16 / d) / 16 of the cache in 16 bits; with qjl 16 / d more for keys.
// Worst-case error of a row: |x| sqrt(1 + d h^2), with h half the largest distance between neighbouring levels, and the
// rounding of |x| to f16. Expected squared error of a unit vector: at most sqrt(3) pi / 2 4^-bits (theorem 1); 0.36,
// 0.117, 0.03 and 0.009 for 1 to 4 bits.
// Deviations: the paper's experiments with 2.5 and 3.5 bits give outlier channels more bits than the others, which is
// not done here. Norms are stored in f16, which the paper leaves open.
// Checked against: the paper's expected errors and the unbiasedness of its theorem 2, by tests. There is no released
// code of the authors.
#include <array>
#include <optional>

#include <kvbench/methods/quantisation/methods.hpp>
#include <kvbench/methods/quantisation/sign_sketch.hpp>
#include <kvbench/methods/quantisation/turned_codec.hpp>
#include <kvbench/methods/stages/quantiser.hpp>

namespace kvbench::methods {
namespace {

constexpr std::array turboquant_levels = {1, 2, 3, 4};

struct TurboquantParams {
  Index bits = 0;
  bool qjl = false;
};
void fields(ParamVisitor& visitor, TurboquantParams& params) {
  visitor.integer("bits", params.bits, {.min = 0, .max = 4},
                  "of a number; 0: as many of 4, 3, 2 and 1 (with qjl 4, 3 and 2) as fit the budget");
  visitor.flag("qjl", params.qjl, "of the bits of a key, one is the sign sketch of what the others leave");
}
void check(const TurboquantParams& params) {
  if (params.qjl && params.bits == 1) throw Error("parameter 'bits' is 1, but 'qjl' takes one bit and leaves none");
}

GroupCodecSettings rounding_of(Index cols, int bits) {
  return {.format = {.group = cols, .scale = kernels::Scale::norm, .grid = kernels::Grid::codebook, .bits = bits},
          .codebook = sphere_codebook(cols, bits),
          .encode_with_stored = false};
}

class RotatedCodec : public Codec {
 public:
  /// `part`: the number of the rotation among the head's matrices. The sketch of a residual takes part + 1.
  RotatedCodec(const Draws& draws, std::uint32_t part, Index cols, int bits, bool sketched)
      : draws_(draws),
        part_(part),
        rounded_([=] { return orthonormal_matrix(draws, part, cols, cols); }, rounding_of(cols, bits)),
        sketched_(sketched) {}

  Buffer<const float> decoded(const Buffer<const float>& rows, Backend& backend) const override {
    const Buffer<const float> out = rounded_.decoded(rows, backend);
    if (!sketched_) return out;
    const Index d = rows.cols();
    if (!sketch_) sketch_ = matrix_pair(gaussian_matrix(draws_, part_ + 1, d, d), d, d, 1, backend);
    const Buffer<const float> excess = difference(out, rows, backend);
    return difference(out, sign_estimates(excess, norms_of(excess, backend).stored, *sketch_, backend), backend);
  }

  Footprint footprint(Index rows, Index cols) const override {
    Footprint arrays = rounded_.footprint(rows, cols);
    if (!sketched_) return arrays;
    arrays.push_back({.name = "residual signs", .element = packed(1), .rows = rows, .cols = cols});
    arrays.push_back({.name = "residual norms", .element = Element::f16, .rows = rows, .cols = 1});
    return arrays;
  }

 private:
  Draws draws_;
  std::uint32_t part_;
  TurnedCodec rounded_;
  bool sketched_;
  mutable std::optional<MatrixPair> sketch_;  ///< drawn when rows are first encoded, as the rotation is
};

int bits_at(const TurboquantParams& params, std::size_t level) {
  return params.bits > 0 ? static_cast<int>(params.bits) : turboquant_levels.at(level + (params.qjl ? 1 : 0));
}

std::vector<std::string> levels_of(const TurboquantParams& params) {
  std::vector<std::string> names;
  const std::size_t count = params.bits > 0 ? 1 : turboquant_levels.size() - (params.qjl ? 1 : 0);
  for (std::size_t level = 0; level < count; ++level) {
    const int bits = bits_at(params, level);
    names.push_back(fmt::format("{} bit{}{}", bits, bits == 1 ? "" : "s",
                                params.qjl ? ", of keys one for the sketch of the residual" : ""));
  }
  return names;
}

Codecs codecs_at(const HeadPrompt& head, const TurboquantParams& params, std::size_t level, std::uint32_t seed,
                 Backend&) {
  const Index d = head.keys.cols(), dv = head.values.cols();
  if (d < 2 || dv < 2) throw Unavailable("turboquant rotates rows, which takes keys and values of at least 2 channels");
  const Draws draws(seed, "turboquant", head);
  const int bits = bits_at(params, level);
  return {std::make_shared<RotatedCodec>(draws, 0, d, bits - (params.qjl ? 1 : 0), params.qjl),
          std::make_shared<RotatedCodec>(draws, 2, dv, bits, false)};
}

}  // namespace

MethodInfo turboquant_method() {
  MethodInfo info = quantiser<TurboquantParams>(
      {.name = "turboquant",
       .paper = "TurboQuant, arXiv 2504.19874, algorithms 1 and 2",
       .summary = "rows rotated at random and rounded to the codebook of a random unit vector",
       .notes =
           "The rotation comes from the seed and counts no bytes. The paper's experiments with 2.5 and 3.5 bits give "
           "outlier channels more bits than the others; here all have the same.",
       .complexity = {.compress = {"O(n (d^2 + dv^2))"}},
       .seeded = true,
       .variants = {{{"qjl", "true"}}}},
      levels_of, codecs_at);
  info.properties.head_permutation = Property::no("draws are keyed by the head");
  return info;
}

}  // namespace kvbench::methods
