// SPDX-License-Identifier: Apache-2.0
// One decode step of an observing cache, as the harness runs it.
#pragma once

#include <support/small.hpp>

#include <kvbench/methods/contract/host_table.hpp>

namespace kvbench::testing {

struct Step {
  std::vector<std::vector<Entry>> entries;  ///< by query head
  std::vector<float> answers;               ///< [G, dv]
  Ids ids(std::size_t g = 0) const { return ids_of(entries[g]); }
};

/// Appends token t, answers its query, and calls observe() with the attention.
inline Step decode_step(methods::CompressedCache& cache, const HeadData& head, Index t, Backend& backend = ref()) {
  CHECK(append(cache, token_block(head, t, head.total, backend)) == 1);
  const methods::QueryBlock block = query_block(head, t, t + 1, t + 1, backend);
  const methods::EntryTables tables = cache.entries(block);
  CHECK_NOTHROW(check_entries(backend, tokens_of(head, t + 1, backend), 1, t + 1, tables));
  methods::AttentionState state = methods::empty_state(backend, head.group, head.dv);
  std::vector<Buffer<float>> logits;
  attend(backend, tokens_of(head, t + 1, backend), block, tables, state, &logits);
  const methods::HostState sums = methods::on_host(state, backend);
  cache.observe(block, tables, methods::observed_weights(tables, logits, sums, backend));
  return {visible_entries(head, tables, block, backend), answers_of(sums)};
}

/// The entries and answers of the query after the context.
inline Step ask(const methods::CompressedCache& cache, const HeadData& head, Backend& backend = ref()) {
  const methods::QueryBlock block = query_block(head, head.n, head.n + 1, head.n + 1, backend);
  const methods::EntryTables tables = cache.entries(block);
  return {visible_entries(head, tables, block, backend), answer(head, block, tables, backend)};
}

}  // namespace kvbench::testing
