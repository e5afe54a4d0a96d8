// SPDX-License-Identifier: Apache-2.0
// exact: keeps all tokens. Its row is the noise floor: how far the exact pass, with which every answer is compared, is
// from exact attention. For 16 evenly spaced queries of each query head the harness computes exact attention again, in
// fp64 on the host, without a kernel, with the scale and the window of the trace; the metrics of the row compare the
// two. They are rounding alone, unless the exact pass is wrong. All other queries have outputs and no metrics.
// numbers=f16 is the noise floor of another kind: a cache in the 16 bits of engines, which differs from the full one in
// precision alone. Keys and values are rounded to nearest, ties to even, when they are written; its metrics are those
// of any other method.
//
// Parameters: numbers (f32).
// Complexity: O(n d) per query. Memory: the full cache, n (d + dv) numbers.
#include <memory>
#include <vector>

#include <kvbench/kernels/half.hpp>
#include <kvbench/methods/eviction/methods.hpp>
#include <kvbench/methods/stages/kept_cache.hpp>
#include <kvbench/methods/stages/rounded_cache.hpp>
#include <kvbench/methods/stages/rows.hpp>

namespace kvbench::methods {
namespace {

struct ExactParams {
  enum class Numbers { f32, f16 } numbers = Numbers::f32;
};
void fields(ParamVisitor& visitor, ExactParams& params) {
  visitor.choice("numbers", params.numbers, {"f32", "f16"}, "what keys and values are rounded to");
}

class HalfCodec : public Codec {
 public:
  Buffer<const float> decoded(const Buffer<const float>& rows, Backend& backend) const override {
    std::vector<float> numbers = backend.read(rows);
    for (float& number : numbers) number = widen_f16(narrow_f16(number));
    return backend.adopt(std::move(numbers), rows.rows(), rows.cols());
  }
  bool by_row() const override { return true; }
  Footprint footprint(Index rows, Index cols) const override {
    return {{.name = "numbers", .element = Element::f16, .rows = rows, .cols = cols}};
  }
};

MakeCache prepare_exact(const HeadPrompt& head, const ExactParams& params, Backend& backend) {
  return [head, params, &backend](Index /*budget*/, std::uint32_t /*seed*/) -> std::unique_ptr<CompressedCache> {
    auto cache = std::make_unique<KeptCache>(backend, head, KeptTokens{.ids = token_range(0, head.tokens())});
    if (params.numbers == ExactParams::Numbers::f32) return cache;
    const auto codec = std::make_shared<HalfCodec>();
    // Values that are channels of the keys (MLA) are stored with them.
    return rounded_cache(std::move(cache), head, {codec, head.values_in_keys ? nullptr : codec, nullptr}, {}, backend);
  };
}

}  // namespace

MethodInfo exact_method() {
  return with_params<ExactParams>(
      {
          .name = "exact",
          .aliases = {"full"},
          .paper = "reference",
          .summary = "the whole cache: the noise floor of the exact pass",
          .notes = "Ignores the budget.",
          .complexity = {.compress = {"O(n)", 1}, .query = {"O(n (d + dv))", 1}, .memory = {"n (d + dv)", 1}},
          .kind = Kind::exact,
          .streaming = true,
          .windowed = true,
      },
      prepare_exact);
}

}  // namespace kvbench::methods
