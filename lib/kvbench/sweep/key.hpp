// SPDX-License-Identifier: Apache-2.0
// What the cells of a sweep depend on.
#pragma once

#include <kvbench/replay/plan/request.hpp>
#include <kvbench/store/key.hpp>

namespace kvbench::sweep {

/// What the results of a method on a work item depend on. Of RunOptions that is what device and instruction set say:
/// threads and memory change no bit.
struct CellInputs {
  std::string trace, device, isa;  ///< `trace`: its digest
  std::string prompt;
  replay::Protocol protocol = replay::Protocol::prefill;
  Index tokens = 0, context = 0, base = 0, protect_first = 0, protect_last = 0;  ///< as in PromptPlan
  std::int64_t layer = 0;
  std::vector<Index> kv_heads;
  std::string request;  ///< replay::stored_text()
  store::MethodInputs method;
  std::vector<std::string> budgets;  ///< by configuration of the method
  std::vector<std::uint32_t> seeds;  ///< as `budgets`
  /// All layers that are replayed, where the method divides its budget among layers and meets a limit of a cost over
  /// them; otherwise empty.
  std::vector<std::int64_t> layers;
  std::string calibration_trace, calibration_prompt;  ///< empty where the method is not calibrated on another text
};

template <class A>
void visit(A& archive, CellInputs& v) {
  auto& [trace, device, isa, prompt, protocol, tokens, context, base, protect_first, protect_last, layer, kv_heads,
         request, method, budgets, seeds, layers, calibration_trace, calibration_prompt] = v;
  archive(trace, device, isa, prompt, protocol, tokens, context, base, protect_first, protect_last, layer, kv_heads,
          request, method, budgets, seeds, layers, calibration_trace, calibration_prompt);
}

/// What all measures of a kv head depend on.
struct MeasureInputs {
  std::string trace, prompt;  ///< `trace`: its digest
  std::int64_t layer = 0;
  Index kv_head = 0;
  std::vector<std::string> measures;
};

template <class A>
void visit(A& archive, MeasureInputs& v) {
  auto& [trace, prompt, layer, kv_head, measures] = v;
  archive(trace, prompt, layer, kv_head, measures);
}

}  // namespace kvbench::sweep
