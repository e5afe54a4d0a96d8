// SPDX-License-Identifier: Apache-2.0
// Inner products estimated from the signs of a random projection are right on average: QJL (arXiv 2406.03482, lemma
// 3.2) and TurboQuant with the sketch of the residual (arXiv 2504.19874, theorem 2). docs/theory/qjl.unbiased.md.
#pragma once

#include <kvbench/bounds/check/check.hpp>
#include <kvbench/faithful/checks/decoded_rows.hpp>

namespace kvbench::faithful {

/// Keys whose residual is estimated from as many signs as they have channels.
struct SketchedKeys {
  std::string name;
  KeyDecoder rounded;    ///< without the sketch: what the residual is the distance from
  KeyDecoder estimated;  ///< with the sketch
  /// All bits spent on rounding, for comparison. Absent: there is no such quantiser, and no row about ln Z.
  KeyDecoder same_bits;
};

SketchedKeys sketch_alone(const bounds::Subject& subject, Backend& backend);
SketchedKeys turboquant_keys(const bounds::Subject& subject, Backend& backend);

void check_sketched_products(bounds::CheckContext& context, const SketchedKeys& keys);

bounds::Check qjl_unbiased();

}  // namespace kvbench::faithful
