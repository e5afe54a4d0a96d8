// SPDX-License-Identifier: Apache-2.0
// What a user asks a replay to compute (ReplayRequest), and how it runs (RunOptions). Everything is resolved and validated before
// the first head is read.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <kvbench/core/budget.hpp>
#include <kvbench/methods/contract/method.hpp>

namespace kvbench {

/// automatic: `decode` where the trace has tokens after its prompt, else `prefill`. stream: nothing is compressed beforehand,
/// every token arrives from the first one on, and every recorded query is answered at its time.
enum class Protocol { automatic, prefill, decode, stream };
std::string_view name_of(Protocol protocol);
/// Who keeps decoded tokens: the method, as its paper says; or the harness, exactly, on top of the budget.
enum class Decoded { method, keep };

struct MethodChoice {
  const MethodInfo* info = nullptr;
  Params params;
};

/// What is computed.
struct ReplayRequest {
  std::vector<MethodChoice> methods;
  std::vector<Budget> budgets = {Budget::parse("25%")};
  std::vector<std::pair<std::size_t, std::size_t>> excluded;  ///< (method, budget), as indices, that do not run
  std::vector<std::uint32_t> seeds = {0, 1, 2, 3, 4};         ///< unseeded methods run once
  Protocol protocol = Protocol::automatic;
  Decoded decoded = Decoded::method;
  std::optional<Index> window;         ///< prefill: the last `window` tokens stay exact; default n - prompt_tokens, or 256
  std::vector<std::int64_t> layers;    ///< model layer numbers; empty: all in the trace
  std::vector<std::int64_t> kv_heads;  ///< empty: all
  std::vector<std::string> prompts;    ///< group names; empty: all
  Index protect_first = 0, protect_last = 0;  ///< tokens of the context that the harness keeps exactly
  bool protect_outside = false;               ///< they come on top of the budget, and shares apply to the middle
  Index dense_layers = 0;                     ///< first layers of the model that stay exact (rows carry dense = 1)
  bool recall_sinks = false;                  ///< count protected tokens in recall too
  bool standalone = false;  ///< answer each cell alone: no shared scores, nothing in common with other budgets
  /// Element type of a deployment's cache, for the byte columns (bf16 and f16 cost the same).
  Element kv_element = Element::f16;
};

/// How it is computed, and what is kept of it. Nothing here changes a result, except that backend and instruction set may change
/// the last bits.
struct RunOptions {
  std::string backend = "cpu";  ///< cpu, cuda or ref; see choose_device()
  std::optional<Isa> isa;       ///< cpu instruction set; default: the best
  int threads = 0;              ///< 0: OMP_NUM_THREADS, else all processors; on cuda one
  double memory = 0;            ///< bytes that heads in flight may take together (see head_memory.hpp); 0: default_memory()
  /// The largest unit that is read while another computes; default: 256 MiB as far as `memory` allows, on a GPU 2 GiB.
  std::optional<std::size_t> read_ahead_bytes;
  bool keep_raw = false;  ///< keep each cell's outputs and entries
};

/// Callbacks from the engine; may be called from several threads, never at the same time.
struct ReplayHooks {
  std::function<void(Index done, Index total)> progress;
  std::function<void(const std::string&)> note;  ///< one sentence for the user, such as why fewer threads run than asked for
  const std::atomic<bool>* stop = nullptr;       ///< set: the replay throws Interrupted at the next cell
};

}  // namespace kvbench
