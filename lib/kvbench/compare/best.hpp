// SPDX-License-Identifier: Apache-2.0
// Tests which rows of a replay are distinguishable from the best row of their group.
#pragma once

#include <span>

#include <kvbench/replay/records/record.hpp>

namespace kvbench::compare {

/// Sets ranked_by of the rows over heads, and best, diff_best, geomean, ratio_best, their intervals and tied of those
/// that are ranked. A group has the same run, trace, prompt, layer, budget, protocol and device. Candidates are the
/// rows that are ok, not dense, not calibrated on themselves and not references (is_reference()), and that answered the
/// same queries of the same heads as the best row; this is evidence::best_of() the rows with the most answered queries,
/// and `random` (is_baseline()) only where no other is.
/// `figure`: what ranks them; 0: the first one that all candidates have. Candidates without it are not ranked, nor
/// those in which it means nothing (Record::outside()).
///
/// rel_err is paired by block of queries, head and seed. Rows over evenly spaced layers or all layers of a model, and
/// rows over three texts or more, are tested over layers and texts: `tied` then says whether another layer or text
/// could reverse the order. All other groups are tested over blocks of queries, and `tied` holds for these layers and
/// texts alone (evidence::test_group()).
///
/// kl_predicted and the mean square of residual_err are those of all layers together, of which a few decide, so that
/// places are texts: rows over three texts or more are tested over them. Others are tested over blocks of queries, or,
/// for kl_predicted, over probes (with layers that are a sample: over the probes of layers), for these texts alone.
///
/// Over places, Holm counts the comparisons with the best (Hsu, Annals of Statistics 1984: with these the rows that are
/// tied contain the truly best one); over blocks, all pairs of candidates. `tied` is empty where nothing was tested:
/// too few blocks for any p-value to pass Holm, one seed, an infinite mean, or a figure of 0 on a place in a group over
/// places. The records must be complete: the best row may be missing from a part of a replay.
void mark_best(std::span<replay::Record> records, replay::FigureNumber figure = {});

}  // namespace kvbench::compare
