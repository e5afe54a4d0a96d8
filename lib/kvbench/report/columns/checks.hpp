// SPDX-License-Identifier: Apache-2.0
// The columns of the rows of `kvbench validate`.
#pragma once

#include <array>
#include <span>
#include <string>

#include <kvbench/bounds/check/row.hpp>
#include <kvbench/report/columns/column.hpp>

namespace kvbench::report {

/// The verdicts on claims of papers, and on all other statements, in the order of tables.
inline constexpr std::array claim_verdicts = {Verdict::supported, Verdict::contradicted, Verdict::undecided,
                                              Verdict::untestable};
inline constexpr std::array statement_verdicts = {Verdict::holds_with_margin, Verdict::holds, Verdict::violated,
                                                  Verdict::vacuous, Verdict::not_applicable};

std::span<const Column<bounds::CheckRow>> check_columns();

/// "prompt 0, layer 1, kv head 2", or the stream.
std::string subject_text(const bounds::CheckRow& row);

}  // namespace kvbench::report
