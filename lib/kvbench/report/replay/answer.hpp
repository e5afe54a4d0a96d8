// SPDX-License-Identifier: Apache-2.0
// What a reader may conclude from rows at one budget: which method has the lowest error, which are not distinguishable
// from it, and whether the rows cost the same.
#pragma once

#include <span>
#include <string>
#include <vector>

#include <kvbench/replay/records/record.hpp>

namespace kvbench::report {

/// One sentence per trace, protocol and budget, in order of appearance, over rows with one row per trace and
/// configuration. References (exact, oracle-topk, random) are not ranked. Followed by sentences where there are too few
/// blocks of queries for any significant difference, where the mean of a row is not estimable, and where the rows of a
/// budget differ by more than 5 % in the bytes that they hold, or for a limit of reads in the bytes that they read.
/// `of_texts`: rows that also hold those of single texts; each answer is followed by how many of them agree (wins_of).
std::vector<std::string> answers_of(std::span<const replay::Record> rows,
                                    std::span<const replay::Record> of_texts = {});

/// "At 25 % of the memory, a has the lowest error on 1 of 2 texts, b on 1.": one sentence per budget that was replayed
/// on several texts (summarize_texts).
std::vector<std::string> wins_of(std::span<const replay::Record> records);

/// "Layers 1, 8, 15 of 30." or "All 30 layers.", where all rows that are ok summarise the same layers of one model;
/// else "".
std::string layers_of(std::span<const replay::Record> rows);

}  // namespace kvbench::report
