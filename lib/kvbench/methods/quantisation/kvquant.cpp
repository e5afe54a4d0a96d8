// SPDX-License-Identifier: Apache-2.0
// kvquant-nofisher: keys before RoPE per channel, values per token, codebooks fitted to a text, outliers stored apart.
// KVQuant, Hooper et al., arXiv 2401.18079; SqueezeAILab/KVQuant quant/kvquant/simquant_module_quantizer.py, as
// quant/llama_simquant.py runs it with --nuq --include_sparse --sparsity-threshold 0.99, without --fisher.
//
// Keys, turned back by RoPE: each channel has the percentiles 0.5 and 99.5 of the calibration text, l and u, in f16.
// Numbers below l or above u are outliers. Of the others, y = (x - o) / s with o = (u + l) / 2 and s = (u - l) / 2 in
// f16 becomes the code of the nearest level. Decoded keys are turned forth again.
// Values: the numbers of a token in all kv heads of the layer have the percentiles 0.5 and 99.5 of their own; those at
// or beyond them are outliers. The largest and smallest of the others, and of the median of all, give o and s as above,
// which are stored in f16.
// Levels: one codebook of 2^bits for the keys of a layer and one for its values, by k-means (at most 50 iterations)
// over all y of the calibration text that are no outliers; y of values are computed with the percentiles of the token.
// Outliers are stored in f16 beside a column in 16 bits, and a row pointer in 32 bits for each token.
// Codebooks, row pointers and o and s of values are stored once for a layer, with its first kv head.
// The calibration text is that of --calibrate; without it, the context itself, and the row says so. Where the model has
// no RoPE, or a scaled one, rows are skipped.
//
// Parameters: bits, 0 (default) lets the budget choose from 4, 3 and 2; first (false): the first token is exact, counts
// 16 bits a number beside its codes, and is not in the codebooks; the released --first_few_fp16 1.
// Complexity: O(n (d + dv)) to encode and to decode; sorting for the codebooks takes log n times that.
// Memory: about (bits + 0.01 * 32) / 16 of the cache in 16 bits, and 96 bits for each token of a layer.
// Worst-case error of a number that is no outlier: s times the largest of half the distances between neighbouring
// levels, level_1 + 1 and 1 - level_2^b, and what the rounding of o and s to f16 adds. Of an outlier: its rounding to
// f16. Of keys this holds before RoPE, which turns pairs of channels and keeps the norm of their error.
// Deviations: the name says the largest. The released code weights the k-means by squared gradients (Fisher), which a
// trace does not have. Its k-means starts from random centroids (scikit-learn), here from medians of equal parts; its
// keys are normalised by percentiles in fp32 for the k-means, here by those in f16. It does not store o and s of values
// in f16, and rounds all decoded numbers to f16. At a midpoint of levels it takes the lower one, here the higher.
// Q-Norm, capped counts of outliers and clamping, which it has too, are off by default there and absent here.
// Where heads of a composition hold different tokens, what is stored once for a layer counts for those of the first.
// Rows that are no token's own, such as means, have no position and no other heads: such compositions are skipped.
// Outliers, thresholds and codebooks are computed on the host.
// Checked against: arithmetic by hand of the rules above (tests/unit/methods/quantisation/kvquant.cpp); not run beside
// the released code.
#include <kvbench/methods/quantisation/methods.hpp>

#include <algorithm>
#include <array>

#include <kvbench/methods/quantisation/group_codec.hpp>
#include <kvbench/methods/quantisation/kvquant_layer.hpp>
#include <kvbench/methods/stages/quantiser.hpp>
#include <kvbench/methods/stages/rows.hpp>

namespace kvbench::methods {
namespace {

constexpr std::array kvquant_levels = {2, 3, 4};

struct KvquantParams {
  Index bits = 0;
  bool first = false;
};
void fields(ParamVisitor& visitor, KvquantParams& params) {
  visitor.integer("bits", params.bits, {.min = 0, .max = 4}, "of a code; 0: as many of 4, 3 and 2 as fit the budget");
  visitor.flag("first", params.first, "the first token is stored in 16 bits");
}
void check(const KvquantParams& params) {
  if (params.bits == 1) throw Error("parameter 'bits' is 1; it must be 0, 2, 3 or 4");
}

/// A codec of the keys or the values of one head of the layer.
class KvquantCodec : public Codec {
 public:
  KvquantCodec(std::shared_ptr<KvquantLayer> layer, std::size_t head) : layer_(std::move(layer)), head_(head) {}

  Buffer<const float> decoded(const Buffer<const float>& rows, Backend& backend) const override {
    return decoded_at(rows, token_range(0, rows.rows()), backend);
  }
  Buffer<const float> decoded_at(const Buffer<const float>& rows, std::span<const std::int32_t> tokens,
                                 Backend& backend) const override {
    if (std::ranges::find(tokens, -1) != tokens.end()) {
      throw Unavailable(
          "kvquant-nofisher stores rows of tokens, which have a position and values in the other kv heads, but not "
          "rows that a method makes itself, such as means");
    }
    return rows.rows() == 0 ? rows : decoded_tokens(rows, tokens, backend);
  }
  Footprint footprint(Index rows, Index cols) const override {
    return {{.name = "codes", .element = packed(layer_->bits()), .rows = rows, .cols = cols}};
  }

 protected:
  virtual Buffer<const float> decoded_tokens(const Buffer<const float>& rows, std::span<const std::int32_t> tokens,
                                             Backend& backend) const = 0;

  kernels::GroupFormat format(kernels::Axis axis, Index group) const {
    return {.axis = axis, .group = group, .grid = kernels::Grid::codebook, .bits = layer_->bits()};
  }

  /// The decoded rows, with the outliers of `rows` in f16 and its whole tokens exact. outlying(row, column, number)
  template <class Outlying>
  Buffer<const float> with_exceptions(Buffer<const float> decoded, const Buffer<const float>& rows,
                                      std::span<const std::int32_t> tokens, Backend& backend, Outlying outlying) const {
    std::vector<float> out = backend.read(decoded);
    decoded = {};  // memory is bounded by three copies of the rows
    const HostView<float> exact = backend.on_host(rows);
    const auto cols = static_cast<std::size_t>(rows.cols());
    for (std::size_t i = 0; i < out.size(); ++i) {
      if (layer_->whole(tokens[i / cols]))
        out[i] = exact[i];
      else if (outlying(i / cols, i % cols, exact[i]))
        out[i] = in_f16(exact[i]);
    }
    return backend.adopt(std::move(out), rows.rows(), rows.cols());
  }

  /// The arrays of `outliers` in these tokens and, once for a layer, its codebook.
  Footprint sparse(Index outliers, std::span<const std::int32_t> tokens, Index cols) const {
    Footprint arrays = {{.name = "outliers", .element = Element::f16, .rows = outliers, .cols = 1},
                        {.name = "columns of outliers", .element = Element::u8, .rows = outliers, .cols = 2}};
    if (std::ranges::any_of(tokens, [&](std::int32_t token) { return layer_->whole(token); }))
      arrays.push_back({.name = "first token", .rows = 1, .cols = cols});
    if (head_ > 0) return arrays;
    arrays.push_back({.name = "row pointers", .element = Element::i32, .rows = std::ssize(tokens) + 1, .cols = 1});
    arrays.push_back({.name = "codebook", .element = Element::f32, .rows = Index{1} << layer_->bits(), .cols = 1});
    return arrays;
  }

  std::shared_ptr<KvquantLayer> layer_;
  std::size_t head_;
};

class KvquantKeys : public KvquantCodec {
 public:
  using KvquantCodec::KvquantCodec;

  void append(Index first, const Buffer<const float>& rows) const override { layer_->append_keys(head_, first, rows); }

  Footprint extras(std::span<const std::int32_t> tokens) const override {
    const auto d = static_cast<Index>(layer_->key_thresholds(head_).lower.size());
    Footprint arrays = sparse(layer_->outlying_keys(head_, tokens), tokens, d);
    arrays.push_back({.name = "thresholds", .element = Element::f16, .rows = 2, .cols = d});
    return arrays;
  }

 private:
  Buffer<const float> decoded_tokens(const Buffer<const float>& rows, std::span<const std::int32_t> tokens,
                                     Backend& backend) const override {
    const Buffer<const float> before = layer_->turned(head_, rows, tokens, -1);
    const KeyThresholds& of = layer_->key_thresholds(head_);
    const Buffer<const float> scale = backend.adopt(of.scale, 1, rows.cols()),
                              offset = backend.adopt(of.offset, 1, rows.cols());
    Buffer<const float> coded = recoded(
        before, format(kernels::Axis::tokens, rows.rows()),
        {.scale = scale, .offset = offset, .stored_scale = scale, .stored_offset = offset, .book = &layer_->key_book()},
        backend);
    const auto outlying = [&](std::size_t, std::size_t channel, float x) { return of.outlying(channel, x); };
    return layer_->turned(head_, with_exceptions(std::move(coded), before, tokens, backend, outlying), tokens, 1);
  }
};

class KvquantValues : public KvquantCodec {
 public:
  KvquantValues(std::shared_ptr<KvquantLayer> layer, std::size_t head, Index cols)
      : KvquantCodec(std::move(layer), head), cols_(cols) {}

  void append(Index first, const Buffer<const float>& rows) const override {
    layer_->append_values(head_, first, rows);
  }

  Footprint extras(std::span<const std::int32_t> tokens) const override {
    Footprint arrays = sparse(layer_->outlying_values(head_, tokens), tokens, cols_);
    if (head_ == 0)
      arrays.push_back({.name = "scales and offsets", .element = Element::f16, .rows = std::ssize(tokens), .cols = 2});
    return arrays;
  }

 private:
  Buffer<const float> decoded_tokens(const Buffer<const float>& rows, std::span<const std::int32_t> tokens,
                                     Backend& backend) const override {
    const std::vector<ValueRange>& ranges = layer_->value_ranges();
    std::vector<float> scales, offsets;
    for (const std::int32_t token : tokens) {
      const ValueRange& range = ranges[static_cast<std::size_t>(token)];
      scales.push_back(range.scale), offsets.push_back(range.offset);
    }
    const Buffer<const float> scale = backend.adopt(std::move(scales), rows.rows()),
                              offset = backend.adopt(std::move(offsets), rows.rows());
    Buffer<const float> coded = recoded(rows, format(kernels::Axis::channels, rows.cols()),
                                        {.scale = scale,
                                         .offset = offset,
                                         .stored_scale = scale,
                                         .stored_offset = offset,
                                         .book = &layer_->value_book()},
                                        backend);
    const auto outlying = [&](std::size_t row, std::size_t, float x) {
      return ranges[static_cast<std::size_t>(tokens[row])].outlying(x);
    };
    return with_exceptions(std::move(coded), rows, tokens, backend, outlying);
  }

  Index cols_;
};

std::vector<std::string> kvquant_names(const KvquantParams& params) {
  std::vector<std::string> names;
  for (const int bits : kvquant_levels)
    if (params.bits == 0 || params.bits == bits) names.push_back(fmt::format("{} bits", bits));
  return names;
}

std::vector<Codecs> kvquant_codecs(std::span<const HeadPrompt> heads, const KvquantParams& params, std::size_t level,
                                   std::uint32_t, Backend& backend) {
  const int bits = params.bits > 0 ? static_cast<int>(params.bits) : kvquant_levels.at(level);
  const auto layer = std::make_shared<KvquantLayer>(heads, bits, params.first, backend);
  std::vector<Codecs> codecs;
  for (std::size_t h = 0; h < heads.size(); ++h)
    codecs.push_back(
        {std::make_shared<KvquantKeys>(layer, h), std::make_shared<KvquantValues>(layer, h, heads[h].values.cols())});
  return codecs;
}

}  // namespace

MethodInfo kvquant_nofisher_method() {
  return quantiser<KvquantParams>(
      {.name = "kvquant-nofisher",
       .paper = "KVQuant, arXiv 2401.18079",
       .summary = "keys before RoPE and values by fitted codebooks, one number in a hundred stored apart",
       .notes = "The released code weights its codebooks by gradients (Fisher), which a trace does not have. It "
                "calibrates on "
                "another text (--calibrate); calibrated on the evaluated context, rows are too good.",
       .complexity = {.compress = {"O(n (d + dv) log n)"}},
       .granularity = Granularity::layer,
       .calibrates_on = CalibratesOn::text,
       .whole_context = true,
       .properties = {.equal_bytes = Property::no("how many numbers are stored apart depends on them")}},
      kvquant_names, kvquant_codecs);
}

}  // namespace kvbench::methods
