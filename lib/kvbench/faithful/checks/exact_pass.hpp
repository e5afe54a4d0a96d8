// SPDX-License-Identifier: Apache-2.0
// The exact pass of a replay, whose outputs every answer is compared with, is exact attention: its outputs and
// log-sum-exps are those of fp64 within the rounding of fp32. docs/theory/exact.noise_floor.md.
#pragma once

#include <kvbench/bounds/check/check.hpp>
#include <kvbench/replay/exact/exact_pass.hpp>

namespace kvbench::faithful {

/// An implementation of the exact pass over all queries of a head.
using ExactPass = std::function<replay::ExactBlock(const replay::Head&, Backend&)>;

/// That of a replay.
replay::ExactBlock replayed_exact_pass(const replay::Head& head, Backend& backend);

void check_exact_pass(bounds::CheckContext& context, const ExactPass& pass);

bounds::Check exact_noise_floor();

}  // namespace kvbench::faithful
