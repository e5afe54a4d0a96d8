// SPDX-License-Identifier: Apache-2.0
// Parts of a replay request as users write them, in flags of `kvbench replay` and keys of sweep files.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include <kvbench/replay/plan/request.hpp>

namespace kvbench::config {

const std::map<std::string, replay::Protocol>& protocols();
const std::map<std::string, replay::Decoded>& decoded_policies();

/// The seeds 0 to count - 1. Throws Error unless 1 <= count <= 100000.
std::vector<std::uint32_t> first_seeds(std::int64_t count);
/// These seeds. Throws Error for an empty list, for more than 100000 seeds, and unless 0 <= seed < 2^32.
std::vector<std::uint32_t> listed_seeds(std::span<const std::int64_t> seeds);

/// Sets the numbers of first and last tokens of the context that the harness keeps exactly, inside or outside the
/// budget. Throws Error unless there are two numbers >= 0.
void set_protection(replay::ReplayRequest& request, std::span<const std::int64_t> first_last, bool outside);

}  // namespace kvbench::config
