// SPDX-License-Identifier: Apache-2.0
// qjl: of keys only signs of random projections and norms, values in 2 bits, recent tokens in 16 bits.
// QJL, Zandieh, Daliri, Han, arXiv 2406.03482, algorithms 1 and 2; amirzandieh/QJL models/llama2_utils_qjl.py,
// models/llama2_qjl.py, run_longbench.py, qjl_kernel/csrc/qjl_quant_kernel.cu and qjl_score_kernel.cu.
//
// S has s rows of norm sqrt(d), orthogonal in each block of d. In each `group` of consecutive keys, the `outliers`
// channels of largest norm over the group are outliers. Of a key k = i + o, with o its outlier channels, are stored
// sign(S i), the signs of o under the first s / 2 rows S' of S, and |k| and |o| in f16; of a group its channels.
// <q, k> is estimated by sqrt(pi / 2) (|i| / s <S q_i, sign(S i)> + |o| / (s / 2) <S' q_o, sign(S' o)>), with q_i and
// q_o the query on the channels of i and of o, and |i| = sqrt(|k|^2 - |o|^2) from the stored norms. This is linear in
// q, so that keys are decoded to rows with these inner products: sign_sketch.hpp.
// Waiting keys: the last n mod R; they are encoded once R wait, before that step's attention. Values: as kivi2, groups
// of 32 channels, the last R in 16 bits.
//
// Parameters, as in run_longbench.py: sketch (s, 256) and initial_sketch (512) in the first initial_layers (15);
// outliers (8), group (32), residual (R, 128). They were chosen for d = 128, where s = 256 is 2 bits a number.
// Complexity: O(n s d). Bytes of an encoded key: s / 8 + s / 16 + 4 + outliers / group; of a value 3 dv / 8.
// Worst-case error of a key: |k| (1 + sqrt(d pi / 2)). With independent rows the standard deviation of <q, k> is at
// most sqrt(pi / (2 s)) (|q_i| |i| + sqrt(2) |q_o| |o|), with orthogonal ones it is smaller, but then the mean is
// <q, k> times a factor near 1 + 1 / (4 d), in the released code too. Values as kivi2.
// Deviations: the script's outlier sketch has 256 rows, and 128 in the first layers; s / 2 is what its comments and the
// function qjl_qunatize use. Every head has an S of its own. Where |o| exceeds |k| by rounding, |i| is 0 instead of
// NaN. S comes from the seed and counts no bytes. The released kernels take d = 128 only.
// Checked against: a mean over many seeds, by tests; the code was read line by line.
#include <algorithm>
#include <cmath>
#include <optional>

#include <kvbench/methods/quantisation/group_codec.hpp>
#include <kvbench/methods/quantisation/methods.hpp>
#include <kvbench/methods/quantisation/sign_sketch.hpp>
#include <kvbench/methods/stages/draws.hpp>
#include <kvbench/methods/stages/quantiser.hpp>
#include <kvbench/methods/stages/rows.hpp>

namespace kvbench::methods {
namespace {

constexpr int value_bits = 2;

struct QjlParams {
  Index sketch = 256, initial_sketch = 512, initial_layers = 15, outliers = 8, group = 32, residual = 128;
};
void fields(ParamVisitor& visitor, QjlParams& params) {
  visitor.integer("sketch", params.sketch, {.min = 2, .max = 4096}, "s: signs of a key, an even number");
  visitor.integer("initial_sketch", params.initial_sketch, {.min = 2, .max = 4096}, "s in the first layers, even");
  visitor.integer("initial_layers", params.initial_layers, {.min = 0}, "how many layers have initial_sketch");
  visitor.integer("outliers", params.outliers, {.min = 1, .max = 256}, "channels of a group that are sketched apart");
  visitor.integer("group", params.group, {.min = 1}, "keys that share their outlier channels; channels of a value");
  visitor.integer("residual", params.residual, {.min = 1}, "R: waiting tokens in 16 bits, a multiple of group");
}
void check(const QjlParams& params) {
  if (params.residual % params.group != 0)
    throw Error("parameter 'residual' is {}, which is no multiple of 'group' {}", params.residual, params.group);
  for (const Index s : {params.sketch, params.initial_sketch})
    if (s % 2 != 0) throw Error("a sketch of {} signs has no half for outliers; give an even number", s);
}

/// Which channels of each key [n, d] are outliers.
struct OutlierChannels {
  Buffer<const std::uint8_t> yes, no;  ///< 0 or 1

  /// `a` where outliers are and `b` elsewhere.
  Buffer<const float> choose(const Buffer<const float>& a, const Buffer<const float>& b, Backend& backend) const {
    return combined(yes, 0, a, combined(no, 0, b, {}, backend), backend);
  }
};

OutlierChannels outlier_channels(const Buffer<const float>& rows, Index group, Index count, Backend& backend) {
  const kernels::GroupFormat format = {
      .axis = kernels::Axis::tokens, .group = group, .scale = kernels::Scale::norm, .stored = kernels::Stored::f32};
  const Index n = rows.rows(), d = rows.cols();
  const Buffer<const float> norms = scales_of(rows, format, backend).scale;
  const std::vector<std::int32_t> best = backend.read(best_columns(norms, 0, d, count, backend));
  std::vector<std::uint8_t> yes(static_cast<std::size_t>(n * d), 0), no(yes.size(), 1);
  for (Index i = 0; i < n; ++i)
    for (Index k = 0; k < count; ++k) {
      const auto at = static_cast<std::size_t>(i * d + best[static_cast<std::size_t>(i / group * count + k)]);
      yes[at] = 1, no[at] = 0;
    }
  return {backend.adopt(std::move(yes), n, d), backend.adopt(std::move(no), n, d)};
}

/// sqrt(whole^2 - part^2), 0 where part is larger.
Buffer<const float> rest_of(const Buffer<const float>& whole, const Buffer<const float>& part, Backend& backend) {
  std::vector<float> a = backend.read(whole);
  const std::vector<float> b = backend.read(part);
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = std::sqrt(std::max(0.0f, a[i] * a[i] - b[i] * b[i]));
  return backend.adopt(std::move(a), whole.rows());
}

class QjlKeys : public Codec {
 public:
  QjlKeys(const Draws& draws, const QjlParams& params, Index rows, Index cols)
      : draws_(draws), rows_(rows), outliers_(std::min(params.outliers, cols)), params_(params) {}

  Index encoded(Index, Index held) const override { return held / params_.residual * params_.residual; }

  Buffer<const float> decoded(const Buffer<const float>& rows, Backend& backend) const override {
    draw(rows.cols(), backend);
    // A sketch in fp32 is many times as wide as a key: only that of a block of whole groups is in memory.
    const Index n = rows.rows(), block = params_.group * (1 + 4096 / params_.group);
    const auto out = backend.allocate<float>(n, rows.cols());
    for (Index begin = 0; begin < n; begin += block) {
      const Index count = std::min(block, n - begin);
      copy_rows(decoded_block(rows.slice(begin, count), backend), out.slice(begin, count), backend);
    }
    return out;
  }

  Footprint footprint(Index rows, Index) const override {
    const Index groups = (rows + params_.group - 1) / params_.group;
    return {{.name = "signs", .element = packed(1), .rows = rows, .cols = rows_},
            {.name = "outlier signs", .element = packed(1), .rows = rows, .cols = rows_ / 2},
            {.name = "norms", .element = Element::f16, .rows = rows, .cols = 1},
            {.name = "outlier norms", .element = Element::f16, .rows = rows, .cols = 1},
            {.name = "outlier channels", .element = Element::u8, .rows = groups, .cols = outliers_}};
  }

 private:
  Buffer<const float> decoded_block(const Buffer<const float>& rows, Backend& backend) const {
    const OutlierChannels channels = outlier_channels(rows, params_.group, outliers_, backend);
    const Buffer<const float> outliers = combined(channels.yes, 0, rows, {}, backend),
                              inliers = combined(channels.no, 0, rows, {}, backend);
    const Buffer<const float> outlier_norms = norms_of(outliers, backend).stored;
    const Buffer<const float> inlier_norms = rest_of(norms_of(rows, backend).stored, outlier_norms, backend);
    return channels.choose(sign_estimates(outliers, outlier_norms, *half_, backend),
                           sign_estimates(inliers, inlier_norms, *sketch_, backend), backend);
  }

  void draw(Index cols, Backend& backend) const {
    if (sketch_) return;
    std::vector<double> matrix = orthonormal_matrix(draws_, 0, rows_, cols);
    const double norm = std::sqrt(static_cast<double>(cols));
    sketch_ = matrix_pair(matrix, rows_, cols, norm, backend);
    matrix.resize(static_cast<std::size_t>(rows_ / 2 * cols));
    half_ = matrix_pair(matrix, rows_ / 2, cols, norm, backend);
  }

  Draws draws_;
  Index rows_, outliers_;
  QjlParams params_;
  mutable std::optional<MatrixPair> sketch_, half_;  ///< drawn when rows are first encoded
};

Index signs_of(const HeadPrompt& head, const QjlParams& params) {
  return head.layer.value < params.initial_layers ? params.initial_sketch : params.sketch;
}

std::vector<std::string> level(const QjlParams& params) {
  return {fmt::format("{} signs of a key ({} in the first {} layers), values in {} bits", params.sketch,
                      params.initial_sketch, params.initial_layers, value_bits)};
}

Codecs codecs(const HeadPrompt& head, const QjlParams& params, std::size_t, std::uint32_t seed, Backend&) {
  const Index d = head.keys.cols();
  if (d > 256) throw Unavailable(fmt::format("qjl stores the numbers of channels in a byte, and keys have {}", d));
  const GroupCodecSettings values = {
      .format = range_format(value_bits, params.group), .residual = Residual::window, .waiting = params.residual};
  return {std::make_shared<QjlKeys>(Draws(seed, "qjl", head), params, signs_of(head, params), d),
          std::make_shared<GroupCodec>(values)};
}

}  // namespace

MethodInfo qjl_method() {
  return quantiser<QjlParams>(
      {.name = "qjl",
       .paper = "QJL, arXiv 2406.03482, algorithms 1 and 2",
       .summary = "keys as signs of random projections, values in 2 bits, recent tokens exact",
       .notes =
           "Sketches and outliers are those of the released code, whose orthogonal rows make inner products larger "
           "by 1 / (4 d). Its sketch sizes are for 128 channels.",
       .complexity = {.compress = {"O(n s d)"}},
       .seeded = true,
       .properties = {.head_permutation = Property::no("draws are keyed by the head"),
                      .equal_bytes = Property::no("the first layers have longer sketches")}},
      level, codecs);
}

}  // namespace kvbench::methods
