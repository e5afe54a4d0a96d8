// SPDX-License-Identifier: Apache-2.0
// The documents of a run: made by the tasks from a text, or read as token ids.
#pragma once

#include <kvbench/eval/results.hpp>

#include "../llama/model.hpp"
#include "options.hpp"

namespace kvbench::kveval {

/// Sets tasks and documents. Throws Error with file and remedy, also where a document is longer than the model's context.
void make_documents(const Options& options, const llama::Model& model, EvalResults& results);

/// The tokens of the short context of a document, which shows which tokens need the distant context: the last tenth.
std::vector<std::int32_t> short_context_of(const llama::Model& model, const TaskDocument& document);

}  // namespace kvbench::kveval
