// SPDX-License-Identifier: Apache-2.0
// The documents of a run: made by the tasks from a text, or read as token ids.
#pragma once

#include <kvbench/eval/results.hpp>

#include <apps/eval/options.hpp>
#include <apps/llama/model.hpp>

namespace kvbench::kveval {

/// The prompt group that a dump of a document would have.
inline constexpr const char* document_prompt = "0";

/// Sets tasks and documents, each at all lengths of the context. Throws Error with file and remedy, also where even the
/// shortest is longer than the model's context.
void make_documents(const Options& options, const llama::Model& model, eval::EvalResults& results);

/// Why a document at one of several lengths is not run: it is longer than those that the model was trained on; else "".
std::string beyond_training(const Options& options, const llama::Model& model, const eval::TaskDocument& document);

}  // namespace kvbench::kveval
