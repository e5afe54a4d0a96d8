// SPDX-License-Identifier: Apache-2.0
// exact: keeps all tokens. Its row is the noise floor: how far the exact pass, with which every answer is compared, is
// from exact attention. For 16 evenly spaced queries of each query head the harness computes exact attention again, in
// fp64 on the host, without a kernel, with the scale and the window of the trace; the metrics of the row compare the
// two. They are rounding alone, unless the exact pass is wrong. All other queries have outputs and no metrics.
//
// Parameters: none.
// Complexity: O(n d) per query. Memory: the full cache, n (d + dv) numbers.
#include <kvbench/methods/eviction/methods.hpp>
#include <kvbench/methods/stages/kept_cache.hpp>
#include <kvbench/methods/stages/rows.hpp>

namespace kvbench::methods {
namespace {

MakeCache prepare_exact(const HeadPrompt& head, const NoParams&, Backend& backend) {
  return [head, &backend](Index /*budget*/, std::uint32_t /*seed*/) {
    return std::make_unique<KeptCache>(backend, head, KeptTokens{.ids = token_range(0, head.tokens())});
  };
}

}  // namespace

MethodInfo exact_method() {
  return with_params<NoParams>(
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
