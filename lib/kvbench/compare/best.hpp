// SPDX-License-Identifier: Apache-2.0
// Tests which rows of a replay are distinguishable from the best row of their group.
#pragma once

#include <span>

#include <kvbench/replay/records/record.hpp>

namespace kvbench::compare {

/// Sets best, diff_best, ratio_best, their intervals and tied of the rows over heads. A group has the same run, trace,
/// prompt, layer, budget, protocol and device. Its best row has the lowest mean rel_err among the rows with the most
/// answered queries. Candidates are the rows that are ok, not dense, without hindsight and not references
/// (is_reference()), and that answered the same queries of the same heads as the best row. Differences are paired by
/// block of queries, head and seed.
///
/// Rows over evenly spaced layers or all layers of a model, and rows over three texts or more, are tested over layers
/// and texts (place_test() of the logarithms of errors): `tied` then says whether another layer or text could reverse
/// the order. All other rows are tested over blocks of queries, and `tied` holds for these layers and texts alone. Over
/// places, Holm counts the comparisons with the best (Hsu, Annals of Statistics 1984: with these the rows that are tied
/// contain the truly best one); over blocks, all pairs of candidates. `tied` is empty where nothing was tested: too few
/// blocks for any p-value to pass Holm, one seed, or an infinite mean. The records must be complete: the best row may
/// be missing from a part of a replay.
void mark_best(std::span<replay::Record> records);

}  // namespace kvbench::compare
