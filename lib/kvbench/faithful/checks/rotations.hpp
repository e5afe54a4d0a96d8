// SPDX-License-Identifier: Apache-2.0
// The rotations of the quantisers keep inner products within the rounding of fp32. docs/theory/rotation.products.md.
#pragma once

#include <kvbench/bounds/check/check.hpp>
#include <kvbench/faithful/checks/decoded_rows.hpp>

namespace kvbench::faithful {

/// Rows [n, d], rotated.
struct Rotation {
  std::string name;
  double rounding = 0;  ///< of a rotated row, relative to its length
  KeyDecoder turned;    ///< with the draws of a seed
};

/// Blocks of as many channels as the largest power of two that divides d, as `hadamard=true` rotates.
Rotation hadamard_rotation(const bounds::Subject& subject, Backend& backend);
/// That of turboquant.
Rotation random_rotation(const bounds::Subject& subject, Backend& backend);

void check_rotation(bounds::CheckContext& context, const Rotation& rotation);

bounds::Check rotation_products();

}  // namespace kvbench::faithful
