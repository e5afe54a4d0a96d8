// SPDX-License-Identifier: Apache-2.0
// One kv head on the host, and the views of it for a method and for a harness: a minimal harness for tests.
#pragma once

#include <vector>

#include <kvbench/methods/contract/attend.hpp>
#include <kvbench/methods/contract/info.hpp>

namespace kvbench::testing {

/// All tokens of a prompt and the queries of all positions; the first n tokens are the context.
struct HeadData {
  Index n = 0;      ///< context
  Index total = 0;  ///< with the tokens after it
  Index d = 0, dv = 0, group = 1;
  float scale = 1;
  std::vector<float> keys;      ///< [total, d]
  std::vector<float> pre_rope;  ///< [total, d]; empty: none
  std::vector<float> values;    ///< [total, dv]
  std::vector<float> queries;   ///< [G, total, d]
  std::optional<methods::Rope> rope;
  Index window = 0;                  ///< sliding window, 0 = none; such a head has no column sums
  std::vector<methods::Part> lacks;  ///< what its trace does not hold
  PromptId prompt;
  LayerId layer{1};
  KvHeadId head;
};

struct Shape {
  Index n = 48, decoded = 14, d = 8, dv = 6, group = 3;
};
/// Seeded numbers in (-2, 2); keys are rotated to their positions where d is even. Different streams are independent.
HeadData random_head(const Shape& shape, std::uint32_t stream, Backend& backend);
/// Uniform in (-2, 2).
std::vector<float> random_numbers(Index count, std::uint32_t stream, std::uint32_t part);

/// The input of a method: all queries inside the context are observed, with their column sums.
methods::HeadPrompt prompt_of(const HeadData& head, Backend& backend);
/// The tokens 0 .. end - 1.
methods::HeadTokens tokens_of(const HeadData& head, Index end, Backend& backend);
/// The decoded tokens begin .. end - 1.
methods::TokenBlock token_block(const HeadData& head, Index begin, Index end, Backend& backend);
/// The causal queries at the positions begin .. end - 1, with exact logits for the tokens 0 .. tokens - 1.
methods::QueryBlock query_block(const HeadData& head, Index begin, Index end, Index tokens, Backend& backend);

/// num / den; 0 where there is no entry.
std::vector<float> answers_of(const methods::HostState& sums);
/// Answers [G*m, dv] from these entries.
std::vector<float> answer(const HeadData& head, const methods::QueryBlock& queries, const methods::EntryTables& tables,
                          Backend& backend);
/// Answers from all visible tokens of the queries.
std::vector<float> exact_answer(const HeadData& head, const methods::QueryBlock& queries, Backend& backend);
/// The tokens begin .. end - 1 as entries of weight 1: the exact tail of prefill.
methods::EntryTable exact_entries(Index begin, Index end, Backend& backend);

struct Entry {
  TokenId id = 0;
  float num = 1, den = 1;
  std::vector<float> key, value;  ///< where they differ from those of the token; otherwise empty
  friend auto operator<=>(const Entry&, const Entry&) = default;
};
/// The visible entries of each query row g*m + i, sorted.
std::vector<std::vector<Entry>> visible_entries(const HeadData& head, const methods::EntryTables& tables,
                                                const methods::QueryBlock& queries, Backend& backend);

using Ids = std::vector<TokenId>;

/// The ids of entries with a weight in either sum, once each, in increasing order.
Ids ids_of(const std::vector<Entry>& entries);

}  // namespace kvbench::testing
