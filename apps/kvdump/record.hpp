// SPDX-License-Identifier: Apache-2.0
// Turns what was captured into a trace.
#pragma once

#include <string>
#include <vector>

#include <kvbench/trace/schema.hpp>
#include <kvbench/trace/writer.hpp>

#include "layer_capture.hpp"
#include "prompt.hpp"

namespace kvbench::kvdump {

/// The description of a trace of `prompts`, whose layers all have the shapes and parameters of `layers`.
/// source_quantisation: of the model file given, where --f32 ran a conversion of it instead.
trace::TraceInfo describe(const Options& options, const Model& model, const std::string& source_quantisation,
                          const std::vector<Prompt>& prompts, const std::vector<LayerCapture>& layers);

/// Writes one prompt's arrays. Throws Error where a number does not fit the trace's element type.
void write_prompt(trace::Writer& writer, std::size_t prompt, const std::vector<LayerCapture>& layers);

}  // namespace kvbench::kvdump
