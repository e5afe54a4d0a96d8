// SPDX-License-Identifier: Apache-2.0
// Parts of a replay request as users write them, in flags of `kvbench replay` and keys of sweep files.
#pragma once

#include <span>
#include <vector>

#include <kvbench/replay/plan/request.hpp>

namespace kvbench::config {

/// These seeds; with `count` the first of them is their number, and they are the seeds from 0. Throws Error for none,
/// for more than 100000, and unless 0 <= seed < 2^32.
std::vector<std::uint32_t> seeds_of(std::span<const std::int64_t> numbers, bool count);

/// Sets the numbers of first and last tokens of the context that the harness keeps exactly, inside or outside the
/// budget. Throws Error unless there are two numbers >= 0.
void set_protection(replay::ReplayRequest& request, std::span<const std::int64_t> first_last, bool outside);

}  // namespace kvbench::config
