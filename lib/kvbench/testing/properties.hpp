// SPDX-License-Identifier: Apache-2.0
// The functions of the table in contract.cpp, by file.
#pragma once

#include <kvbench/testing/trial.hpp>

namespace kvbench::testing {

// budgets.cpp
std::string entries_hold_the_budget(Trial& trial);
std::string plans_hold_the_budget(Trial& trial);
std::string weights_are_as_declared(Trial& trial);
std::string budgets_are_nested(Trial& trial);
std::string bytes_are_equal(Trial& trial);

// decoding.cpp
std::string blocks_are_tokens(Trial& trial);
std::string streams_start_empty(Trial& trial);

// edges.cpp
std::string short_contexts(Trial& trial);
std::string few_channels(Trial& trial);
std::string query_heads(Trial& trial);
std::string equal_tokens(Trial& trial);
std::string zero_values(Trial& trial);
std::string large_logits(Trial& trial);
std::string sliding_windows(Trial& trial);

// information.cpp
std::string evaluated_queries_do_not_matter(Trial& trial);
std::string parts_are_declared(Trial& trial);

// invariance.cpp
std::string full_budget_is_exact(Trial& trial);
std::string values_scale(Trial& trial);
std::string keys_shift(Trial& trial);
std::string heads_permute(Trial& trial);

// sharing.cpp
std::string seeds_repeat(Trial& trial);
std::string caches_are_independent(Trial& trial);
std::string heads_are_independent(Trial& trial);
std::string heads_come_in_any_order(Trial& trial);

// compositions.cpp
std::string int8_stores_its_tokens(Trial& trial);
std::string kivi4_stores_its_tokens(Trial& trial);
std::string stored_tokens_decode(Trial& trial);
std::string it_stores_tokens_of_others(Trial& trial);

}  // namespace kvbench::testing
