// SPDX-License-Identifier: Apache-2.0
// Writes the captured arrays as a trace.
#pragma once

#include <string>
#include <vector>

#include <kvbench/trace/schema.hpp>
#include <kvbench/trace/writer.hpp>

#include <apps/kvdump/prompt.hpp>
#include <apps/kvdump/sketch.hpp>
#include <apps/llama/layer_capture.hpp>

namespace kvbench::kvdump {

using llama::LayerCapture;

/// The description of a trace of `prompts`, whose layers all have the shapes and parameters of `layers`.
/// source_quantisation: quantisation of the given model file, which --f32 converts.
trace::TraceInfo describe(const Options& options, const Model& model, const std::string& source_quantisation,
                          const std::vector<Prompt>& prompts, const std::vector<LayerCapture>& layers,
                          const Sketches& sketches);

/// Writes the arrays of one prompt. Throws Error where a value does not fit the element type of the trace.
void write_prompt(trace::Writer& writer, std::size_t prompt, const std::vector<LayerCapture>& layers,
                  const Sketches& sketches);

}  // namespace kvbench::kvdump
