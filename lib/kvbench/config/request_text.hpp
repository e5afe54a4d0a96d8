// SPDX-License-Identifier: Apache-2.0
// Parts of a replay request as a user writes them: shared by the flags of `kvbench replay` and the keys of sweep files.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include <kvbench/replay/plan/request.hpp>

namespace kvbench::config {

const std::map<std::string, Protocol>& protocols();
const std::map<std::string, Decoded>& decoded_policies();

/// `count` seeds 0, 1, ... Throws Error unless 1 <= count <= 100000.
std::vector<std::uint32_t> first_seeds(std::int64_t count);
/// These seeds. Throws Error unless there are some, and each is in 0 .. 2^32 - 1.
std::vector<std::uint32_t> listed_seeds(std::span<const std::int64_t> seeds);

/// Sets what the harness keeps exactly: (first, last) tokens of the context. Throws Error unless these are two numbers >= 0.
void set_protection(ReplayRequest& request, std::span<const std::int64_t> first_last, bool outside);

}  // namespace kvbench::config
