// SPDX-License-Identifier: Apache-2.0
// What a replay computes (ReplayRequest) and how it runs (RunOptions). Both are validated before the first head is read
// (plan.hpp).
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <kvbench/core/budget.hpp>
#include <kvbench/replay/plan/configuration.hpp>

namespace kvbench::trace {
class Reader;
}

namespace kvbench::replay {

/// The treatment of decoded tokens. method: the method compresses them as in its paper. keep: they are kept exactly, in
/// addition to the budget.
enum class Decoded { method, keep };

/// What methods make of the heads of a text (MethodInfo::score_of_head), computed once for all work items.
struct HeadScores {
  std::mutex mutex;
  std::map<std::string, std::map<std::int64_t, std::vector<float>>> known;  ///< by method and back end, by layer
};

/// A text other than the evaluated ones, on which methods compute what a deployment computes beforehand (see
/// calibration.hpp).
struct Calibration {
  std::shared_ptr<const trace::Reader> trace;
  std::size_t prompt = 0;  ///< index into TraceInfo::prompts
  std::shared_ptr<HeadScores> head_scores = std::make_shared<HeadScores>();
  std::string text() const;  ///< "other.h5, prompt '0'"
};

/// What is computed.
struct ReplayRequest {
  std::vector<MethodChoice> methods;
  std::vector<Budget> budgets = {Budget::parse("25%")};
  std::vector<std::pair<std::size_t, std::size_t>> excluded;  ///< pairs (method, budget) of indices that do not run
  std::vector<std::uint32_t> seeds = {0, 1, 2, 3, 4};         ///< configurations without randomness run once
  Protocol protocol = Protocol::automatic;
  Decoded decoded = Decoded::method;
  std::optional<Index> window;       ///< prefill: number of last tokens kept exactly; default n - prompt_tokens, or 256
  std::vector<std::int64_t> layers;  ///< numbers of layers of the model; empty: all layers of the trace
  std::vector<std::int64_t> kv_heads;         ///< empty: all kv heads
  std::vector<std::string> prompts;           ///< names of prompt groups of the trace; empty: all
  Index protect_first = 0, protect_last = 0;  ///< tokens of the context that the harness keeps exactly
  bool protect_outside = false;            ///< these tokens are not part of the budget, and shares refer to the others
  Index dense_layers = 0;                  ///< number of first layers of the model kept exactly (column `dense` is 1)
  bool recall_sinks = false;               ///< whether recall counts protected tokens
  std::optional<Calibration> calibration;  ///< absent: methods calibrate on the evaluated context
  bool standalone = false;                 ///< compute every configuration alone: nothing is shared between budgets
  /// Element type of a deployment's cache, for the byte columns (bf16 and f16 cost the same).
  methods::Element kv_element = methods::Element::f16;
  FigureNumber rank_by{};
};

/// How a replay runs, and which outputs it keeps. These options do not change results, except that `backend` and
/// `isa` may change the last bits.
struct RunOptions {
  std::string backend = "cpu";  ///< cpu, cuda or ref; see choose_device()
  std::optional<Isa> isa;       ///< instruction set of the cpu back end; default: the best available
  int threads = 0;              ///< 0: OMP_NUM_THREADS, otherwise all processors; on cuda 1
  double memory = 0;            ///< bytes for all work items that are computed at the same time; 0: default_memory()
  /// Bytes of the largest work item that is read while another is computed; default: 256 MiB as far as `memory` allows,
  /// on a GPU 2 GiB.
  std::optional<std::size_t> read_ahead_bytes;
  bool keep_raw = false;    ///< keep the outputs and entries of every configuration
  bool keep_exact = false;  ///< with keep_raw: also the exact outputs
};

/// Reports the finished part of a work item, between 0 and 1.
using PartDone = std::function<void(double part)>;

/// Callbacks. They may be called from several threads, but never from two at the same time.
struct ReplayHooks {
  /// The number of finished work items, with the finished parts of running ones as fractions.
  std::function<void(double done, Index total)> progress;
  std::function<void(const std::string&)>
      note;  ///< a sentence for the user, such as why fewer threads run than requested
  std::function<void(const std::string&)> failure;  ///< methods::Failed::details(), wherever a method fails
  const std::atomic<bool>* stop = nullptr;  ///< when set, the replay throws Interrupted before the next configuration
};

}  // namespace kvbench::replay
