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
#pragma once

#include <kvbench/methods/contract/info.hpp>

namespace kvbench::methods {

MethodInfo qjl_method();

}  // namespace kvbench::methods
