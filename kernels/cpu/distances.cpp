// SPDX-License-Identifier: Apache-2.0
#include "distance_tile.hpp"

namespace kvbench::kernels::cpu::KVBENCH_ISA {

template <>
void run(const SquaredDistances<HostMatrix>& op, Context& context) {
  constexpr Index block = 8 * kTileRows;
  const Index d = op.points.cols;
  auto* strips = scratch<float>(context, 0, round_up(op.centres.rows, kStrip) * d);
  auto* tiles = scratch<float>(context, 1, block * d);
  pack_strips(op.centres.data, op.centres.stride, op.centres.rows, d, strips);
  for (Index begin = 0; begin < op.points.rows; begin += block) {
    const Index points = min(block, op.points.rows - begin);
    pack_tiles(op.points.data + begin * op.points.stride, op.points.stride, 1, points, d, 1, tiles);
    for (Index centre = 0; centre < op.centres.rows; centre += kStrip)
      for (Index p = 0; p < points; p += kTileRows)
        with_rows(min(kTileRows, points - p), [&]<int Rows>() {
          Vec acc[Rows][2];
          distance_tile<Rows>(tiles + p * d, strips + centre * d, d, acc);
          for (int r = 0; r < Rows; ++r)
            write_strip(acc[r], op.centres.rows - centre, op.out.data + (begin + p + r) * op.out.stride + centre);
        });
  }
}

}  // namespace kvbench::kernels::cpu::KVBENCH_ISA
