// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include <apps/eval/options.hpp>
#include <apps/llama/model.hpp>

namespace kvbench::kveval {

/// The model of the last command, for the next one that asks for the same file with the same weights.
struct LoadedModel {
  std::string path, sha256;  ///< of the file that was asked for; `model` may be its copy with fp32 weights
  bool f32 = false;
  std::optional<llama::Model> model;
};

/// Evaluates every configuration on every document and writes the table. Returns the exit code: 1 where a configuration
/// failed. Throws Error, IoError, std::bad_alloc or Interrupted, and then writes nothing.
int evaluate(const Options& options, LoadedModel& loaded);

}  // namespace kvbench::kveval
