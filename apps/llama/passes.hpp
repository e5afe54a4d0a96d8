// SPDX-License-Identifier: Apache-2.0
// Passes of tokens through the model, with capture.
#pragma once

#include <functional>
#include <span>

#include <apps/llama/capture.hpp>
#include <apps/llama/context.hpp>

namespace kvbench::llama {

/// The number of threads that `wanted` means; 0: all cores.
int thread_count(int wanted);

/// Makes the OpenMP threads of this process wait passively: starts the program again with OMP_WAIT_POLICY where it is
/// not set. To be called first in main(), once.
void wait_passively(char** argv);

/// What is captured on these layers of the model, without the optional arrays.
CaptureOptions capture_options(const Model& model, std::vector<int> layers, int threads);

/// Decodes the tokens from the first one on in batches of these sizes. `done` is called with the number of tokens of
/// each finished batch. Throws as Capture::end_batch() and Context::decode(); Interrupted.
void run_batches(Context& context, Capture& capture, std::vector<std::int32_t>& tokens, std::span<const int> batches,
                 const std::function<void(int)>& done);

}  // namespace kvbench::llama
