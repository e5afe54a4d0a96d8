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
#pragma once

#include <kvbench/methods/contract/info.hpp>

namespace kvbench::methods {

MethodInfo turboquant_method();

}  // namespace kvbench::methods
